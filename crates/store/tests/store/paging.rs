//! Pages: whatever their size, they add up to the same rows; never more than a page is read.

use attache_core::ports::store::{Change, RowCursor, RowRange, Store};
use proptest::prelude::*;
use serde_json::json;

use crate::fixture::*;

#[derive(Clone, Debug)]
struct Shape {
    seq: Option<i64>,
    hidden: Hidden,
    parts: Vec<(i64, usize)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Hidden {
    No,
    Yes,
    /// A key that was set and taken back.
    Null,
}

fn shapes() -> impl Strategy<Value = Vec<Shape>> {
    let hidden = prop_oneof![4 => Just(Hidden::No), 1 => Just(Hidden::Yes), 1 => Just(Hidden::Null)];
    let parts = proptest::collection::btree_map(-3_i64..12, 0_usize..400, 0..6);
    let shape = (proptest::bool::weighted(0.9), 1_i64..4, hidden, parts);
    proptest::collection::vec(shape, 0..12).prop_map(|shapes| {
        let mut seq = 0;
        let shape = |(placed, step, hidden, parts): (bool, i64, Hidden, std::collections::BTreeMap<_, _>)| {
            seq += step;
            Shape { seq: placed.then_some(seq), hidden, parts: parts.into_iter().collect() }
        };
        shapes.into_iter().map(shape).collect()
    })
}

async fn store_with(home: &Home, shapes: &[Shape]) -> attache_store::SqliteStore {
    let store = home.open();
    let epoch = create(&store, "a").await;
    let mut changes = Vec::new();
    for (number, shape) in shapes.iter().enumerate() {
        let name = format!("{number}");
        let mut row = message("a", &name, shape.seq);
        match shape.hidden {
            Hidden::No => {}
            Hidden::Yes => row.metadata = object(json!({"hidden_at": 5})),
            Hidden::Null => row.metadata = object(json!({"hidden_at": null})),
        }
        changes.push(Change::InsertMessage(row));
        for (index, size) in &shape.parts {
            changes.push(Change::PutPart(part("a", &name, *index, &"x".repeat(*size))));
        }
    }
    fenced(&store, "a", epoch, changes).await.unwrap();
    store
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn any_page_size_gives_the_same_rows(shapes in shapes(), max_bytes in 0_usize..4_000, before in 0_i64..30) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let home = Home::new();
            let store = store_with(&home, &shapes).await;
            let visible: Vec<_> = shapes
                .iter()
                .enumerate()
                .filter(|(_, shape)| shape.seq.is_some() && shape.hidden != Hidden::Yes)
                .map(|(number, shape)| {
                    let indexes: Vec<i64> = shape.parts.iter().map(|(index, _)| *index).collect();
                    (format!("msg_{number}"), shape.seq.unwrap(), indexes)
                })
                .collect();
            let all = read_all(&store, "a", max_bytes).await;
            let seen: Vec<_> = all
                .iter()
                .map(|(message, parts)| {
                    let indexes: Vec<i64> = parts.iter().map(|part| part.index).collect();
                    (message.id.as_str().to_owned(), message.seq.unwrap(), indexes)
                })
                .collect();
            prop_assert_eq!(&seen, &visible);
            prop_assert_eq!(&all, &read_all(&store, "a", usize::MAX).await);

            let range = RowRange { after: None, before_seq: Some(before), max_bytes: usize::MAX };
            let page = store.read_rows(&session_id("a"), range).await.unwrap();
            let expected = visible.iter().filter(|(_, seq, _)| *seq < before).count();
            prop_assert_eq!(page.messages.len(), expected);
            prop_assert_eq!(page.next, None);
            Ok(())
        })?;
    }
}

#[tokio::test]
async fn a_page_is_bounded_and_a_single_larger_part_still_comes() {
    let home = Home::new();
    let parts = (0..40).map(|index| (index, if index == 20 { 50_000 } else { 1_000 })).collect();
    let shapes = [Shape { seq: Some(1), hidden: Hidden::No, parts }];
    let store = store_with(&home, &shapes).await;
    let mut range = RowRange { after: None, before_seq: None, max_bytes: 10_000 };
    let mut pages = 0;
    let mut parts = 0;
    loop {
        let page = store.read_rows(&session_id("a"), range.clone()).await.unwrap();
        let bytes: usize =
            page.messages.iter().flat_map(|(_, parts)| parts).map(|part| part.data_json.len()).sum();
        let count: usize = page.messages.iter().map(|(_, parts)| parts.len()).sum();
        assert!(bytes <= 10_000 || count == 1, "{bytes} bytes in {count} parts");
        pages += 1;
        parts += count;
        let Some(next) = page.next else { break };
        range.after = Some(next);
    }
    assert_eq!(parts, 40);
    assert!((5..=8).contains(&pages), "{pages} pages");
}

#[tokio::test]
async fn a_cursor_of_the_caller_s_own_making_works() {
    let home = Home::new();
    let shape = |seq| Shape { seq: Some(seq), hidden: Hidden::No, parts: vec![(0, 1), (1, 1)] };
    let store = store_with(&home, &[shape(1), shape(2), shape(3)]).await;
    for (after, expected) in [
        (RowCursor { seq: 1, part_index: i64::MAX }, vec![(2, 2), (3, 2)]),
        (RowCursor { seq: 1, part_index: 0 }, vec![(1, 1), (2, 2), (3, 2)]),
        (RowCursor { seq: 1, part_index: 1 }, vec![(2, 2), (3, 2)]),
        (RowCursor { seq: 3, part_index: 1 }, vec![]),
        (RowCursor { seq: 9, part_index: 0 }, vec![]),
        (RowCursor { seq: 0, part_index: 0 }, vec![(1, 2), (2, 2), (3, 2)]),
    ] {
        let range = RowRange { after: Some(after), before_seq: None, max_bytes: usize::MAX };
        let page = store.read_rows(&session_id("a"), range).await.unwrap();
        let seen: Vec<_> = page.messages.iter().map(|(row, parts)| (row.seq.unwrap(), parts.len())).collect();
        assert_eq!(seen, expected, "after {after:?}");
    }
}

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
