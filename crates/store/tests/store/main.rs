//! The store from outside: what is written comes back, whoever dies and whatever fails in between.

mod blobs;
mod changes;
mod fixture;
mod leases;
mod opening;
mod paging;
