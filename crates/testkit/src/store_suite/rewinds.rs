//! Hiding, showing and copying many messages at once.

use attache_core::part::Role;
use attache_core::ports::store::{
    Batch, Change, ConversationCopy, RowRange, SeqSpan, SpanMessages, Store, StoreError,
};
use serde_json::json;

use super::Storage;
use super::rows::*;

/// Messages `1` to `6` of session `a`: prompts at odd places, a part each, and one that waits.
async fn talk<P: Store + attache_core::ports::store::Leases>(store: &P) -> attache_core::ports::store::Epoch {
    let epoch = create(store, "a").await;
    let mut changes = Vec::new();
    for seq in 1..=6 {
        let mut row = message("a", &seq.to_string(), Some(seq));
        row.role = if seq % 2 == 1 { Role::User } else { Role::Assistant };
        if seq % 2 == 0 {
            row.metadata = stored(json!({"usage": {"input": 10, "output": seq}, "cost_usd": 0.5}));
        }
        changes.push(Change::InsertMessage(row));
        changes.push(Change::PutPart(part("a", &seq.to_string(), 0, &format!("text {seq}"))));
    }
    let mut waiting = message("a", "waiting", None);
    waiting.metadata = stored(json!({"queued_at": 5}));
    changes.push(Change::InsertMessage(waiting));
    fenced(store, "a", epoch, changes).await.unwrap();
    epoch
}

async fn seqs(store: &impl Store, session: &str) -> Vec<i64> {
    let range = RowRange { after: None, before_seq: None, max_bytes: usize::MAX };
    let page = store.read_rows(&session_id(session), range).await.unwrap();
    page.messages.iter().filter_map(|(row, _)| row.seq).collect()
}

fn span(from: i64, before: i64) -> SeqSpan {
    SeqSpan { from, before }
}

pub async fn a_span_is_hidden_and_only_what_that_hid_is_shown_again<S: Storage>() {
    let storage = S::create();
    let store = storage.open();
    let epoch = talk(&store).await;
    let hide =
        |from, before, hidden_at| Change::HideMessages { span: span(from, before), hidden_at, updated_at: 9 };
    let show =
        |from, before, hidden_at| Change::ShowMessages { span: span(from, before), hidden_at, updated_at: 9 };
    fenced(&store, "a", epoch, vec![hide(5, 7, 100)]).await.unwrap();
    fenced(&store, "a", epoch, vec![hide(3, 7, 200)]).await.unwrap();
    assert_eq!(seqs(&store, "a").await, [1, 2]);
    let (row, _) = store.message(&message_id("4")).await.unwrap().unwrap();
    assert_eq!((row.metadata.hidden_at(), row.updated_at), (Some(200), 9));
    assert_eq!(row.metadata.cost_usd(), Some(0.5), "everything else stays");
    let queued = record(&store, "a").await.queued;
    assert_eq!(queued, [message_id("waiting")], "what waits has no place yet");
    fenced(&store, "a", epoch, vec![show(3, 7, 200)]).await.unwrap();
    assert_eq!(seqs(&store, "a").await, [1, 2, 3, 4]);
    fenced(&store, "a", epoch, vec![show(1, 7, 100)]).await.unwrap();
    assert_eq!(seqs(&store, "a").await, [1, 2, 3, 4, 5, 6]);
    let (row, _) = store.message(&message_id("6")).await.unwrap().unwrap();
    assert_eq!(row.metadata, stored(json!({"usage": {"input": 10, "output": 6}, "cost_usd": 0.5})));
}

pub async fn the_last_prompts_come_newest_first<S: Storage>() {
    let storage = S::create();
    let store = storage.open();
    let epoch = talk(&store).await;
    let last = async |before, limit| {
        let prompts = store.last_prompts(&session_id("a"), before, limit).await.unwrap();
        assert!(prompts.iter().all(|(_, parts)| parts.len() == 1));
        prompts.into_iter().filter_map(|(row, _)| row.seq).collect::<Vec<_>>()
    };
    assert_eq!(last(i64::MAX, 2).await, [5, 3]);
    assert_eq!(last(5, 10).await, [3, 1]);
    let hide = Change::HideMessages { span: span(5, 7), hidden_at: 1, updated_at: 1 };
    fenced(&store, "a", epoch, vec![hide]).await.unwrap();
    assert_eq!(last(i64::MAX, 1).await, [3]);
}

pub async fn a_span_gives_its_snapshots_and_nothing_else<S: Storage>() {
    let storage = S::create();
    let store = storage.open();
    let epoch = talk(&store).await;
    let mark = |name: &str| Change::PatchMessage {
        id: message_id(name),
        seq: None,
        metadata: stored(json!({"snapshot_id": "call"})),
        updated_at: 1,
    };
    let snapshot = |name: &str, index| {
        let mut row = part("a", name, index, "x");
        row.kind = "data-snapshot".into();
        Change::PutPart(row)
    };
    // The one of an answer without a mark is not looked for.
    let changes =
        vec![mark("4"), mark("6"), snapshot("6", 2), snapshot("6", 1), snapshot("4", 1), snapshot("2", 1)];
    fenced(&store, "a", epoch, changes).await.unwrap();
    let content = async |from, messages| {
        let id = session_id("a");
        let content = store.span(&id, span(from, 7), messages, "data-snapshot").await.unwrap();
        let places: Vec<_> =
            content.snapshots.iter().map(|row| (row.message_id.clone(), row.index)).collect();
        (content.messages, places)
    };
    let all = [("4", 1), ("6", 1), ("6", 2)].map(|(name, index)| (message_id(name), index));
    assert_eq!(content(1, SpanMessages::Visible).await, (6, all.to_vec()));
    let hide = Change::HideMessages { span: span(5, 7), hidden_at: 7, updated_at: 1 };
    fenced(&store, "a", epoch, vec![hide]).await.unwrap();
    assert_eq!(content(1, SpanMessages::Visible).await, (4, all[..1].to_vec()));
    assert_eq!(content(1, SpanMessages::HiddenAt(7)).await, (2, all[1..].to_vec()));
    assert_eq!(content(1, SpanMessages::HiddenAt(8)).await, (0, Vec::new()));
}

pub async fn a_conversation_is_copied_whole_or_not_at_all<S: Storage>() {
    let storage = S::create();
    let store = storage.open();
    let epoch = talk(&store).await;
    let mut boundary = part("a", "4", 1, "");
    boundary.kind = "data-compaction".into();
    boundary.data_json =
        json!({"type": "data-compaction", "data": {"tail_start_id": message_id("3"), "id": "c"}}).to_string();
    let hide = Change::HideMessages { span: span(5, 7), hidden_at: 7, updated_at: 1 };
    fenced(&store, "a", epoch, vec![Change::PutPart(boundary), hide]).await.unwrap();
    let copied = |to: &str, before_seq| Batch {
        session_id: session_id(to),
        fence: None,
        changes: vec![
            Change::CreateSession(Box::new(session(to))),
            Change::CopyConversation(ConversationCopy { from: session_id("a"), before_seq, now: 1_000 }),
        ],
    };
    commit(&store, copied("b", 100)).await.unwrap();
    assert_eq!(seqs(&store, "b").await, [1, 2, 3, 4]);
    let range = RowRange { after: None, before_seq: None, max_bytes: usize::MAX };
    let (from, to) = (
        store.read_rows(&session_id("a"), range.clone()).await.unwrap().messages,
        store.read_rows(&session_id("b"), range).await.unwrap().messages,
    );
    for ((from, from_parts), (to, to_parts)) in from.iter().zip(&to) {
        assert_ne!(from.id, to.id);
        assert_eq!((&from.metadata, from.role, from.created_at), (&to.metadata, to.role, to.created_at));
        assert_eq!(from_parts.len(), to_parts.len());
        assert!(to_parts.iter().all(|part| part.message_id == to.id && part.session_id == session_id("b")));
        assert_eq!(from_parts[0].data_json, to_parts[0].data_json);
    }
    let boundary: serde_json::Value = serde_json::from_str(&to[3].1[1].data_json).unwrap();
    assert_eq!(
        boundary["data"]["tail_start_id"],
        json!(to[2].0.id),
        "a boundary names a message of the copy"
    );
    let row = record(&store, "b").await.row;
    assert_eq!((row.totals.prompt_tokens, row.totals.completion_tokens), (20, 6));
    assert_eq!(row.totals.cost_usd, 1.0);
    assert_eq!(row.parent_message_id, Some(message_id("4")));
    let again = commit(&store, copied("b", 100)).await;
    assert!(matches!(again, Err(StoreError::Conflict(_))), "{again:?}");
    commit(&store, copied("c", 3)).await.unwrap();
    assert_eq!(seqs(&store, "c").await, [1, 2]);
    let alone = Batch { changes: copied("a", 3).changes.split_off(1), ..copied("a", 3) };
    let refused = commit(&store, alone).await;
    assert!(
        matches!(refused, Err(StoreError::Fenced(_))),
        "only into a session that is being made: {refused:?}"
    );
}
