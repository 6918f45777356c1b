//! What every store must do, once: the same tests run against the one in memory and the one on disk. What only
//! one of them can show (files, crashes, group commits) is tested beside it.

pub mod attachments;
pub mod conversations;
pub mod leases;
pub mod pages;
pub mod rewinds;
pub mod rows;
pub mod run_log;
pub mod sessions;

use std::future::Future;

use attache_core::ports::store::{Blobs, Leases, Store};

/// A place to store things, shared by processes.
pub trait Storage: Sized {
    type Process: Store + Leases;

    /// An empty one.
    fn create() -> Self;

    /// A process that uses it.
    fn open(&self) -> Self::Process;

    /// Ends a process that gives nothing back.
    fn kill(process: Self::Process);

    fn blobs(&self) -> impl Blobs;
}

/// Runs one test of the suite.
pub fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

/// The whole suite as tests of a [`Storage`], in the module where it is written.
#[macro_export]
macro_rules! store_suite {
    ($storage:ty) => {
        $crate::store_suite! { $storage:
            attachments::equal_content_is_kept_until_no_session_refers_to_it,
            attachments::an_unknown_digest_is_not_there,
            attachments::what_is_shared_stays_with_the_last_who_refers_to_it,
            conversations::messages_are_inserted_patched_and_never_doubled,
            conversations::the_queue_is_what_was_not_fired_nor_cancelled_in_order,
            conversations::parts_are_inserted_then_updated_by_id,
            conversations::parts_of_an_edited_message_are_dropped_from_an_index_on,
            conversations::a_batch_can_not_reach_into_another_session,
            leases::without_a_fence_nothing_but_creation_and_deletion_passes,
            leases::taking_raises_the_epoch_and_taking_again_does_not,
            leases::a_living_owner_keeps_its_session_and_a_fenced_one_writes_nothing,
            leases::an_owner_that_left_without_releasing_is_dead,
            leases::many_who_ask_at_once_get_one_owner,
            leases::a_change_elsewhere_wakes_a_follower,
            pages::any_page_size_gives_the_same_rows,
            pages::a_page_is_bounded_and_a_single_larger_part_still_comes,
            pages::a_cursor_of_the_callers_own_making_works,
            rewinds::a_span_is_hidden_and_only_what_that_hid_is_shown_again,
            rewinds::the_last_prompts_come_newest_first,
            rewinds::a_span_gives_its_snapshots_and_nothing_else,
            rewinds::a_conversation_is_copied_whole_or_not_at_all,
            run_log::the_log_is_dense_and_read_from_any_index,
            run_log::the_log_is_trimmed_by_whole_segments_and_keeps_the_newest,
            run_log::a_live_run_is_remembered_until_it_ends,
            run_log::batches_of_a_session_are_committed_in_the_order_given,
            run_log::a_batch_is_written_whole_or_not_at_all,
            sessions::a_session_comes_back_as_it_was_created,
            sessions::a_directory_that_is_no_text_is_kept_byte_for_byte,
            sessions::creating_twice_is_a_conflict_and_leaves_the_first,
            sessions::patches_of_a_session_merge_and_add_up,
            sessions::deleting_erases_all_of_a_session_and_nothing_of_its_children,
            sessions::lists_show_newest_first_in_pages_without_empty_or_archived_sessions,
            sessions::sessions_of_tasks_are_listed_on_request_only,
        }
    };
    ($storage:ty: $($module:ident::$test:ident,)*) => {
        $(
            #[test]
            fn $test() {
                $crate::store_suite::run($crate::store_suite::$module::$test::<$storage>());
            }
        )*
    };
}

#[cfg(test)]
mod tests {
    /// A test that nothing runs can't fail.
    #[test]
    fn the_list_names_every_test() {
        let list = include_str!("store_suite.rs");
        let modules = [
            ("attachments", include_str!("store_suite/attachments.rs")),
            ("conversations", include_str!("store_suite/conversations.rs")),
            ("leases", include_str!("store_suite/leases.rs")),
            ("pages", include_str!("store_suite/pages.rs")),
            ("rewinds", include_str!("store_suite/rewinds.rs")),
            ("run_log", include_str!("store_suite/run_log.rs")),
            ("sessions", include_str!("store_suite/sessions.rs")),
        ];
        for (module, text) in modules {
            let names = text.lines().filter_map(|line| line.strip_prefix("pub async fn ")?.split('<').next());
            let mut names = names.peekable();
            assert!(names.peek().is_some(), "{module} has no test");
            for name in names {
                assert!(list.contains(&format!("{module}::{name},")), "{module}::{name} is not in the list");
            }
        }
    }
}
