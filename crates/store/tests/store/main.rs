//! The store from outside: what is written comes back, whoever dies and whatever fails in between.

// All of this is test code, not only the functions marked as tests: failing loudly is its purpose.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod blobs;
mod changes;
mod children;
mod conformance;
mod faults;
mod fixture;
mod full_disk;
mod kill_loop;
mod leases;
mod opening;
mod paging;
mod processes;
mod search;
mod shim;
