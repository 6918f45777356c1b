//! Pages: whatever their size, they add up to the same rows.

use attache_core::ports::store::{Change, RowCursor, RowRange, Store};
use serde_json::json;

use super::Storage;
use super::rows::*;
use crate::fakes::random::Random;

#[derive(Clone, Debug)]
struct Shape {
    seq: Option<i64>,
    hidden: Hidden,
    /// Index and size of each.
    parts: Vec<(i64, usize)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Hidden {
    No,
    Yes,
    /// A key that was set and taken back.
    Null,
}

/// Up to twelve messages with up to six parts each; some are queued, some hidden, some empty, and numbers have
/// holes.
fn shapes(random: &mut Random) -> Vec<Shape> {
    let mut seq = 0;
    let count = random.below(12);
    let mut shape = || {
        seq += 1 + random.below(3) as i64;
        let hidden =
            *random.pick(&[Hidden::No, Hidden::No, Hidden::No, Hidden::No, Hidden::Yes, Hidden::Null]);
        let mut index = -3;
        let mut part = |random: &mut Random| {
            index += 1 + random.below(2) as i64;
            (index, random.below(400) as usize)
        };
        let parts = (0..random.below(6)).map(|_| part(random)).collect();
        Shape { seq: (!random.one_in(10)).then_some(seq), hidden, parts }
    };
    (0..count).map(|_| shape()).collect()
}

async fn store_with<S: Storage>(storage: &S, shapes: &[Shape]) -> S::Process {
    let store = storage.open();
    let epoch = create(&store, "a").await;
    let mut changes = Vec::new();
    for (number, shape) in shapes.iter().enumerate() {
        let name = format!("{number}");
        let mut row = message("a", &name, shape.seq);
        match shape.hidden {
            Hidden::No => {}
            Hidden::Yes => row.metadata = stored(json!({"hidden_at": 5})),
            Hidden::Null => row.metadata = stored(json!({"hidden_at": null})),
        }
        changes.push(Change::InsertMessage(row));
        for (index, size) in &shape.parts {
            changes.push(Change::PutPart(part("a", &name, *index, &"x".repeat(*size))));
        }
    }
    fenced(&store, "a", epoch, changes).await.unwrap();
    store
}

pub async fn any_page_size_gives_the_same_rows<S: Storage>() {
    for seed in 0..48 {
        let mut random = Random::new(seed);
        let shapes = shapes(&mut random);
        let (max_bytes, before) = (random.below(4_000) as usize, random.below(30) as i64);
        let storage = S::create();
        let store = store_with(&storage, &shapes).await;
        let placed = shapes.iter().enumerate().filter(|(_, shape)| shape.hidden != Hidden::Yes);
        let visible: Vec<_> = placed
            .filter_map(|(number, shape)| {
                let indexes: Vec<i64> = shape.parts.iter().map(|(index, _)| *index).collect();
                Some((message_id(&number.to_string()), shape.seq?, indexes))
            })
            .collect();
        let all = read_all(&store, "a", max_bytes).await;
        let seen: Vec<_> = all
            .iter()
            .map(|(message, parts)| {
                let indexes: Vec<i64> = parts.iter().map(|part| part.index).collect();
                (message.id.clone(), message.seq.unwrap(), indexes)
            })
            .collect();
        assert_eq!(seen, visible, "seed {seed}");
        assert_eq!(all, read_all(&store, "a", usize::MAX).await, "seed {seed}");

        let range = RowRange { after: None, before_seq: Some(before), max_bytes: usize::MAX };
        let page = store.read_rows(&session_id("a"), range).await.unwrap();
        let expected = visible.iter().filter(|(_, seq, _)| *seq < before).count();
        assert_eq!((page.messages.len(), page.next), (expected, None), "seed {seed}");
    }
}

pub async fn a_page_is_bounded_and_a_single_larger_part_still_comes<S: Storage>() {
    let storage = S::create();
    let parts = (0..40).map(|index| (index, if index == 20 { 50_000 } else { 1_000 })).collect();
    let shapes = [Shape { seq: Some(1), hidden: Hidden::No, parts }];
    let store = store_with(&storage, &shapes).await;
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

pub async fn a_cursor_of_the_callers_own_making_works<S: Storage>() {
    let storage = S::create();
    let shape = |seq| Shape { seq: Some(seq), hidden: Hidden::No, parts: vec![(0, 1), (1, 1)] };
    let store = store_with(&storage, &[shape(1), shape(2), shape(3)]).await;
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
