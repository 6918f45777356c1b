//! Never more than a page is read.

use attache_core::ports::store::{Change, RowRange, Store};

use crate::fixture::*;

/// Row C7, a tenth of it here; the whole million is in the `measure` example.
#[tokio::test]
async fn a_session_of_a_hundred_thousand_parts_is_read_with_bounded_memory() {
    let home = Home::new();
    let store = home.open();
    let epoch = create(&store, "a").await;
    for seq in 0..20 {
        let name = format!("{seq}");
        let mut changes = vec![Change::InsertMessage(message("a", &name, Some(seq)))];
        changes.extend((0..5_000).map(|index| Change::PutPart(part("a", &name, index, &"x".repeat(300)))));
        fenced(&store, "a", epoch, changes).await.unwrap();
    }
    drop(store);
    let store = home.open();
    let mut range = RowRange { after: None, before_seq: None, max_bytes: 256 * 1024 };
    let mut parts = 0;
    let mut before = None;
    let mut most = 0;
    loop {
        let page = store.read_rows(&session_id("a"), range.clone()).await.unwrap();
        parts += page.messages.iter().map(|(_, parts)| parts.len()).sum::<usize>();
        most = most.max(resident_bytes());
        // The first pages warm up the allocator and the page cache.
        before = before.or((parts > 5_000).then_some(most));
        let Some(next) = page.next else { break };
        range.after = Some(next);
    }
    assert_eq!(parts, 100_000);
    let grown = most - before.unwrap();
    assert!(grown < 4 * 1024 * 1024, "{grown} bytes more at the end of 35 MB");
}

fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}
