//! What every store must do, of the one on disk.

attache_testkit::store_suite!(crate::fixture::Home);
