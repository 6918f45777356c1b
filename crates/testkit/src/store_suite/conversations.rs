//! Messages and their parts: written, changed, refused.

use attache_core::ids::PartId;
use attache_core::ports::store::{Change, Store, StoreError};
use serde_json::{Value, json};

use super::Storage;
use super::rows::*;

pub async fn messages_are_inserted_patched_and_never_doubled<S: Storage>() {
    let storage = S::create();
    let store = storage.open();
    let epoch = create(&store, "a").await;
    let mut queued = message("a", "q", None);
    queued.metadata = stored(json!({"queued_at": 5, "trigger": "human"}));
    fenced(&store, "a", epoch, vec![Change::InsertMessage(queued.clone())]).await.unwrap();
    let again = fenced(&store, "a", epoch, vec![Change::InsertMessage(queued.clone())]).await;
    assert!(matches!(again, Err(StoreError::Conflict(_))), "{again:?}");

    let other = create(&store, "b").await;
    let mut elsewhere = message("b", "q", Some(1));
    elsewhere.metadata = stored(json!({"x": 1}));
    let elsewhere = fenced(&store, "b", other, vec![Change::InsertMessage(elsewhere)]).await;
    assert!(matches!(elsewhere, Err(StoreError::Conflict(_))), "{elsewhere:?}");

    let fire = Change::PatchMessage {
        id: message_id("q"),
        seq: Some(3),
        metadata: stored(json!({"queued_at": null, "model": {"id": "m"}})),
        updated_at: 9,
    };
    fenced(&store, "a", epoch, vec![fire]).await.unwrap();
    let (row, parts) = store.message(&message_id("q")).await.unwrap().unwrap();
    assert_eq!((row.seq, row.updated_at, parts.len()), (Some(3), 9, 0));
    assert_eq!(row.metadata, stored(json!({"trigger": "human", "model": {"id": "m"}})));
    assert_eq!(record(&store, "a").await.last_seq, 3);

    let same_seq = fenced(&store, "a", epoch, vec![Change::InsertMessage(message("a", "r", Some(3)))]).await;
    assert!(matches!(same_seq, Err(StoreError::Conflict(_))), "{same_seq:?}");
    let unknown = Change::PatchMessage {
        id: message_id("none"),
        seq: None,
        metadata: stored(json!({})),
        updated_at: 1,
    };
    let unknown = fenced(&store, "a", epoch, vec![unknown]).await;
    assert!(matches!(unknown, Err(StoreError::Corrupt(_))), "{unknown:?}");
    assert_eq!(store.message(&message_id("none")).await.unwrap(), None);
}

pub async fn the_queue_is_what_was_not_fired_nor_cancelled_in_order<S: Storage>() {
    let storage = S::create();
    let store = storage.open();
    let epoch = create(&store, "a").await;
    let queued = |name: &str, metadata: Value, seq| {
        let mut row = message("a", name, seq);
        row.metadata = stored(metadata);
        Change::InsertMessage(row)
    };
    let changes = vec![
        queued("late", json!({"queued_at": 30}), None),
        queued("b", json!({"queued_at": 20}), None),
        queued("a", json!({"queued_at": 20}), None),
        queued("not_cancelled", json!({"queued_at": 40, "queue_canceled_at": null}), None),
        queued("never_queued", json!({"queued_at": null}), None),
        queued("cancelled", json!({"queued_at": 10, "queue_canceled_at": 11, "hidden_at": 11}), None),
        queued("fired", json!({"queued_at": 1}), Some(1)),
        queued("first", json!({"queued_at": 9}), None),
    ];
    fenced(&store, "a", epoch, changes).await.unwrap();
    let queue = record(&store, "a").await.queued;
    assert_eq!(queue, ["first", "a", "b", "late", "not_cancelled"].map(message_id));
}

pub async fn parts_are_inserted_then_updated_by_id<S: Storage>() {
    let storage = S::create();
    let store = storage.open();
    let epoch = create(&store, "a").await;
    let mut tool = part("a", "m", 1, "");
    tool.kind = "tool-read".into();
    tool.tool_call_id = Some("call_1".into());
    tool.tool_state = Some("input-available");
    let changes = vec![
        Change::InsertMessage(message("a", "m", Some(1))),
        Change::PutPart(part("a", "m", 0, "hel")),
        Change::PutPart(tool.clone()),
    ];
    fenced(&store, "a", epoch, changes).await.unwrap();
    let mut text = part("a", "m", 0, "hello");
    text.created_at = 99;
    text.updated_at = 5;
    tool.tool_state = Some("output-available");
    fenced(&store, "a", epoch, vec![Change::PutPart(text.clone()), Change::PutPart(tool.clone())])
        .await
        .unwrap();
    let (_, parts) = store.message(&message_id("m")).await.unwrap().unwrap();
    text.created_at = 1;
    assert_eq!(parts, [text.clone(), tool]);

    let mut same_place = part("a", "m", 0, "other");
    same_place.id = PartId::new("prt_other");
    let mut moved = text.clone();
    moved.index = 7;
    for wrong in [same_place, moved] {
        let refused = fenced(&store, "a", epoch, vec![Change::PutPart(wrong)]).await;
        assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");
    }
    let orphan = fenced(&store, "a", epoch, vec![Change::PutPart(part("a", "missing", 0, "x"))]).await;
    assert!(matches!(orphan, Err(StoreError::Corrupt(_))), "{orphan:?}");
}

pub async fn parts_of_an_edited_message_are_dropped_from_an_index_on<S: Storage>() {
    let storage = S::create();
    let store = storage.open();
    let epoch = create(&store, "a").await;
    let mut changes = vec![
        Change::InsertMessage(message("a", "m", None)),
        Change::InsertMessage(message("a", "other", None)),
        Change::PutPart(part("a", "other", 2, "stays")),
    ];
    changes.extend((0..4).map(|index| Change::PutPart(part("a", "m", index, "x"))));
    fenced(&store, "a", epoch, changes).await.unwrap();
    let dropped = |name: &str| Change::DropParts { message_id: message_id(name), from: 1 };
    fenced(&store, "a", epoch, vec![dropped("m")]).await.unwrap();
    let (_, parts) = store.message(&message_id("m")).await.unwrap().unwrap();
    assert_eq!(parts, [part("a", "m", 0, "x")]);
    assert_eq!(store.message(&message_id("other")).await.unwrap().unwrap().1.len(), 1);
    let orphan = fenced(&store, "a", epoch, vec![dropped("missing")]).await;
    assert!(matches!(orphan, Err(StoreError::Corrupt(_))), "{orphan:?}");
}

pub async fn a_batch_can_not_reach_into_another_session<S: Storage>() {
    let storage = S::create();
    let store = storage.open();
    let epoch = create(&store, "a").await;
    create(&store, "b").await;
    let other = create(&store, "d").await;
    fenced(&store, "d", other, vec![Change::InsertMessage(message("d", "theirs", Some(1)))]).await.unwrap();
    let patch = Change::PatchMessage {
        id: message_id("theirs"),
        seq: None,
        metadata: stored(json!({})),
        updated_at: 2,
    };
    for change in [
        Change::InsertMessage(message("b", "m", Some(1))),
        Change::PutPart(part("b", "m", 0, "x")),
        Change::CreateSession(Box::new(session("c"))),
        patch,
    ] {
        let refused = fenced(&store, "a", epoch, vec![change]).await;
        assert!(matches!(refused, Err(StoreError::Corrupt(_))), "{refused:?}");
    }
}
