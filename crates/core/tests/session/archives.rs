//! Export and import: a session that goes out and comes back is the same, and what is damaged is refused whole.

use std::sync::{Arc, Mutex};

use attache_core::export::{ExportSources, ExportStyle, Format, export};
use attache_core::ids::{Ids, MessageId, PartId, SessionId};
use attache_core::import::{ArchiveError, Authority, ImportError, Imported, SessionArchive, import};
use attache_core::part::{Part, Role};
use attache_core::ports::store::{
    Batch, Blobs, Change, MessageRow, ModelRef, PartRow, SessionRow, Store, UsageTotals,
};
use attache_core::prompt::digest;
use attache_core::redact::Redactor;
use attache_testkit::fakes::clock::TokioClock;
use attache_testkit::fakes::disk::Disk;
use attache_testkit::fakes::store::MemoryStore;
use attache_testkit::store_suite::rows::{commit, stored};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::*;

fn empty_store() -> (Arc<Mutex<Disk>>, MemoryStore) {
    let disk: Arc<Mutex<Disk>> = Arc::default();
    (disk.clone(), MemoryStore::open(disk, 1, 1))
}

async fn written(store: &MemoryStore, session: &SessionId, style: &ExportStyle) -> String {
    let mut out = Vec::new();
    export(ExportSources { store, blobs: store }, session, style, &mut out).await.unwrap();
    String::from_utf8(out).unwrap()
}

async fn jsonl(store: &MemoryStore, session: &SessionId) -> String {
    written(store, session, &ExportStyle::from(Format::Jsonl)).await
}

fn read(text: &str) -> Result<SessionArchive, ArchiveError> {
    SessionArchive::read(&mut text.as_bytes())
}

async fn imported(store: &MemoryStore, text: &str) -> Result<Imported, ImportError> {
    import(read(text).unwrap(), Authority::Keep, store, store).await
}

/// What is stored of everything; the disk is small enough to be compared as a whole.
fn rows(disk: &Mutex<Disk>) -> (usize, usize, usize) {
    let disk = disk.lock().unwrap();
    let parts = disk.messages.keys().map(|id| disk.parts_of(id).len()).sum();
    (disk.sessions.len(), disk.messages.len(), parts)
}

#[tokio::test(start_paused = true)]
async fn a_session_that_was_lived_comes_back_as_it_was() {
    let script =
        "on *\n reasoning \"hm\"\n text \"I look\"\n call look {\"path\":\"a\"}\n ---\n text \"Done.\"";
    let world = World::new(script);
    let (process, session) = world.session().await;
    say(&session, "go").await;
    say(&session, "/mode plan").await;
    let out = jsonl(&process.store, session.id()).await;
    assert!(out.lines().any(|line| line.starts_with("{\"type\":\"system_prompt\"")), "{out}");
    let (_, store) = empty_store();
    let told = imported(&store, &out).await.unwrap();
    assert_eq!((told.session_id.clone(), told.messages), (session.id().clone(), 4));
    // What it was told of its surroundings is told anew; all else is the same.
    let back = jsonl(&store, session.id()).await;
    assert!(back.lines().skip(1).eq(out.lines().skip(1)), "{back}\n{out}");
    let row = store.session(session.id()).await.unwrap().unwrap().row;
    assert_eq!((row.metadata.mode(), row.metadata.environment()), (Some("plan"), None));
    let again = imported(&store, &out).await.unwrap_err();
    assert_eq!(again.to_string(), format!("session {} is stored already", session.id()));
}

/// One session with everything that can be in one.
async fn rich(store: &MemoryStore, texts: &[String], cost: f64) -> SessionId {
    let id = SessionId::new("ses_0000000000rich");
    let blob = store.put(&id, vec![7; 3_000]).await.unwrap();
    let session = SessionRow {
        id: id.clone(),
        agent: "build".into(),
        workspace_root: "/w/project".into(),
        model: Some(ModelRef { variant: Some("high".into()), ..ModelRef::new("p", "m/n#o") }),
        parent_id: Some(SessionId::new("ses_parent")),
        parent_message_id: None,
        permissions: json!([{"permission": "bash", "pattern": "make", "action": "allow"}]),
        metadata: stored(json!({"title": texts.join(" "), "approval": "all",
            "granted_directories": ["/x"], "additional_directories": ["/y"]})),
        totals: UsageTotals { prompt_tokens: 5, cost_usd: cost, ..UsageTotals::default() },
        created_at: 1,
        updated_at: 2,
        archived_at: Some(3),
    };
    let mut changes = vec![Change::CreateSession(Box::new(session))];
    for (nth, text) in texts.iter().enumerate() {
        let (message, role) =
            (MessageId::new(format!("msg_{nth:026}")), [Role::User, Role::Assistant][nth % 2]);
        let prompt = format!("prompt {}", nth % 3);
        let metadata = json!({"system_prompt_digest": digest(prompt.as_bytes()), "cost_usd": cost});
        changes.push(Change::PutSystemPrompt { digest: digest(prompt.as_bytes()), body: prompt });
        changes.push(Change::InsertMessage(MessageRow {
            id: message.clone(),
            session_id: id.clone(),
            seq: Some(2 * nth as i64 + 1),
            role,
            metadata: stored(metadata),
            created_at: 4,
            updated_at: 5,
        }));
        let parts = [
            json!({"type": "text", "text": text}),
            json!({"type": "tool-bash", "toolCallId": "c1", "state": "output-available",
                "input": {"command": text, "n": cost}, "output": {"data": text}}),
            json!({"type": "file", "mediaType": "image/png", "url": format!("attache-blob:{blob}")}),
            json!({"type": "data-compaction", "data": {"summary": text, "tail_start_id": message}}),
        ];
        for (index, part) in parts.iter().enumerate() {
            changes.push(Change::PutPart(part_row(&id, &message, index, part)));
        }
    }
    commit(store, Batch { session_id: id.clone(), fence: None, changes }).await.unwrap();
    id
}

fn part_row(session: &SessionId, message: &MessageId, index: usize, data: &Value) -> PartRow {
    let part: Part = serde_json::from_value(data.clone()).unwrap();
    PartRow {
        id: PartId::new(format!("prt_{}_{index}", message.as_str())),
        message_id: message.clone(),
        session_id: session.clone(),
        index: 3 * index as i64,
        kind: part.kind().into_owned(),
        data_json: data.to_string(),
        tool_call_id: part.tool().map(|tool| tool.call_id.to_string()),
        tool_state: part.tool().map(|tool| tool.state.as_str()),
        created_at: 6,
        updated_at: 7,
    }
}

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(test)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_goes_out_comes_back_and_goes_out_the_same(
        texts in prop::collection::vec(any::<String>(), 0..6),
        cost in 0.0..1e6_f64,
    ) {
        run(async {
            let (_, from) = empty_store();
            let id = rich(&from, &texts, cost).await;
            let out = jsonl(&from, &id).await;
            let (_, to) = empty_store();
            let told = imported(&to, &out).await.unwrap();
            assert_eq!((told.blobs, told.missing_blobs), (usize::from(!texts.is_empty()), 0));
            assert_eq!(jsonl(&to, &id).await, out);
        });
    }

    /// Beside the first: all names are new, and only the names.
    #[test]
    fn under_new_ids_it_stands_beside_the_first_and_differs_by_names_only(
        texts in prop::collection::vec("[a-z]{0,9}", 1..5),
    ) {
        run(async {
            let (_, store) = empty_store();
            let id = rich(&store, &texts, 0.5).await;
            let out = jsonl(&store, &id).await;
            let ids = Ids::new(Arc::new(TokioClock::start()), 9);
            let archive = read(&out).unwrap().with_new_ids(&ids).unwrap();
            let copy = import(archive, Authority::Keep, &store, &store).await.unwrap().session_id;
            let copied = jsonl(&store, &copy).await;
            let nameless = |text: &str| {
                let names = |word: &str| ["ses_", "msg_", "prt_"].iter().any(|prefix| word.starts_with(prefix));
                let words = text.split('"').map(|word| if names(word) && word != "ses_parent" { "ID" } else { word });
                words.collect::<Vec<_>>().join("\"")
            };
            assert_eq!(nameless(&copied), nameless(&out));
            assert!(!copied.contains(id.as_str()) && !copied.contains("msg_00000000000000000000000000"));
            let tails: Vec<&str> = copied.split("\"tail_start_id\":\"").skip(1).map(|rest| &rest[..30]).collect();
            assert!(tails.iter().all(|tail| copied.contains(&format!("\"type\":\"message\",\"data\":{{\"id\":\"{tail}\""))));
        });
    }

    /// A line lost, doubled, moved or cut anywhere: told with its line, and nothing is stored.
    #[test]
    fn a_damaged_file_is_refused_whole(kind in 0..4, at in any::<prop::sample::Index>(), cut in any::<prop::sample::Index>()) {
        run(async {
            let (_, from) = empty_store();
            let id = rich(&from, &["a".into(), "b".into()], 0.5).await;
            let out = jsonl(&from, &id).await;
            let mut lines: Vec<String> = out.lines().map(str::to_owned).collect();
            let nth = at.index(lines.len());
            match kind {
                0 => drop(lines.remove(nth)),
                1 => lines.insert(nth, lines[nth].clone()),
                2 => lines.truncate(nth),
                _ => {
                    let length = lines[nth].len();
                    lines[nth].truncate(cut.index(length));
                }
            }
            // A prompt that is there twice is the same prompt; one that is missing is only not known.
            let is_prompt = out.lines().nth(nth).unwrap().starts_with("{\"type\":\"system_prompt\"");
            let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
            match read(&text) {
                Ok(_) => assert!(is_prompt && kind < 2, "line {} was damaged by {kind}", nth + 1),
                Err(ArchiveError::Damaged { line, .. }) => {
                    assert!(line <= lines.len().max(1) && (kind != 3 || line == nth + 1), "{line} {nth}");
                }
                Err(other) => panic!("{other}"),
            }
        });
    }
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    run(async {
        let (disk, store) = empty_store();
        let id = rich(&store, &["a".into()], 0.5).await;
        let out = jsonl(&store, &id).await;
        let before = rows(&disk);
        let told = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(told(""), "line 1: the file is empty");
        assert!(told("# Title\n").starts_with("line 1: it can't be read: expected value"));
        assert!(
            told(&out.replacen("\"version\":1", "\"version\":2", 1))
                .starts_with("line 1: version 2 of the format")
        );
        assert!(told(&out.replacen("\"version\":1,", "", 1)).contains("it names no version"));
        assert!(
            told(&out.replace("\"type\":\"part\"", "\"type\":\"pert\""))
                .starts_with("line 4: there is no type `pert`")
        );
        assert!(
            told(&out.replace("prompt 0", "prompt X")).starts_with("line 2: the system prompt is not what")
        );
        assert!(
            told(&out.replace("\"role\":\"user\"", "\"role\":\"boss\"")).contains("there is no role `boss`")
        );
        assert!(told(&out.replace("BwcH", "AwcH")).contains("the attachment is not what its digest says"));
        assert!(
            told(&out.replace("\"type\":\"tool-bash\",\"data\"", "\"type\":\"text\",\"data\""))
                .contains("of another kind")
        );
        assert!(
            told(&out.replace("\"agent\"", "\"agnt\""))
                .starts_with("line 1: it can't be read: unknown field `agnt`")
        );
        assert!(told(&format!("{out}{out}")).contains("something follows the end"));
        assert!(told(out.trim_end().rsplit_once('\n').unwrap().0).contains("it was cut off"));
        assert_eq!(rows(&disk), before);
    });
}

#[test]
fn rules_and_grants_of_a_file_count_only_if_the_user_says_so() {
    run(async {
        let (_, from) = empty_store();
        let id = rich(&from, &["a".into()], 0.5).await;
        let out = jsonl(&from, &id).await;
        let (_, to) = empty_store();
        let told = import(read(&out).unwrap(), Authority::LeaveOut, &to, &to).await.unwrap();
        assert_eq!(told.left_out, 4, "a rule, two directories, a level");
        let row = to.session(&id).await.unwrap().unwrap().row;
        assert_eq!((row.permissions, row.metadata.approval()), (json!([]), None));
        assert!(row.metadata.granted_directories().is_empty() && row.metadata.title().is_some());
    });
}

/// What any store has beside its columns, and what no store has yet.
const SESSION_KEYS: [&str; 16] = [
    "title",
    "mode",
    "approval",
    "environment",
    "instructions",
    "skill_index",
    "additional_directories",
    "granted_directories",
    "rewinds",
    "moving_files",
    "trust",
    "__proto__",
    "first_mode",
    "mode_models",
    "task",
    "background_tasks",
];
const MESSAGE_KEYS: [&str; 18] = [
    "queued_at",
    "queue_canceled_at",
    "queue_enqueued_at",
    "system_prompt_digest",
    "hidden_at",
    "schema_version",
    "snapshot_id",
    "usage",
    "cost_usd",
    "agent",
    "model",
    "turn_end",
    "refused",
    "results_left_out",
    "answers_command",
    "tools",
    "permissions",
    "moving_files",
];
const PART_KINDS: [&str; 19] = [
    "step-start",
    "text",
    "reasoning",
    "source-url",
    "source-document",
    "file",
    "tool-bash",
    "dynamic-tool",
    "data-command",
    "data-notice",
    "data-compaction",
    "data-usage",
    "data-plan",
    "data-file-ref",
    "data-context",
    "data-snapshot",
    "data-environment",
    "data-of-the-future",
    "data-hook",
];

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z/.]{0,8}".prop_map(Value::from),
        Just(json!("all")),
        Just(json!({"kind": "finished", "reason": "stop"})),
        Just(json!({"layer": {"hidden_at": 5, "from_seq": 1, "before_seq": 10}, "direction": "forward"})),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::hash_map("[a-z]{1,4}", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// A part of each kind; those with data of ours have paths and digests in them.
fn part_of(kind: &str) -> Value {
    let data = json!({"title": "t", "files": [{"path": "/w/project/x", "before": {"is": "absent"},
        "after": {"is": "file", "digest": "d", "mode": 0o6755}, "keeper": "client"}]});
    let seen =
        json!({"attache": {"metadata": {"seen": [{"path": "/w/project/x", "digest": "d"}], "kept": 1}}});
    match kind {
        "step-start" => json!({"type": kind}),
        "text" | "reasoning" => json!({"type": kind, "text": "x"}),
        "source-url" => json!({"type": kind, "sourceId": "s", "url": "https://example.org"}),
        "source-document" => json!({"type": kind, "sourceId": "s", "mediaType": "text/plain", "title": "t"}),
        "file" => json!({"type": kind, "mediaType": "text/plain", "url": "data:,x"}),
        "tool-bash" => json!({"type": kind, "toolCallId": "c1", "state": "output-available", "input": {},
            "output": {}, "toolMetadata": seen}),
        "dynamic-tool" => {
            json!({"type": kind, "toolName": "x", "toolCallId": "c2", "state": "output-available",
            "input": {}, "output": {}, "toolMetadata": seen})
        }
        data_kind => json!({"type": data_kind, "id": "i", "data": data}),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Whatever a file says: what is stored of it is on the list, and nothing of it moves files.
    #[test]
    fn an_import_takes_over_what_is_on_its_list_and_nothing_else(
        session in prop::collection::vec(any_value(), SESSION_KEYS.len()),
        message in prop::collection::vec(any_value(), MESSAGE_KEYS.len()),
        keeps in any::<bool>(),
    ) {
        run(async {
            let (_, from) = empty_store();
            let id = SessionId::new("ses_hostile");
            let keyed = |keys: &[&str], values: &[Value]| {
                Value::Object(keys.iter().map(|key| (*key).to_owned()).zip(values.iter().cloned()).collect())
            };
            let row = SessionRow {
                id: id.clone(),
                agent: "build".into(),
                workspace_root: "/w/project".into(),
                model: None,
                parent_id: None,
                parent_message_id: None,
                permissions: json!([]),
                metadata: stored(keyed(&SESSION_KEYS, &session)),
                totals: UsageTotals::default(),
                created_at: 1,
                updated_at: 2,
                archived_at: None,
            };
            let of = MessageId::new("msg_1");
            let mut metadata = keyed(&MESSAGE_KEYS, &message);
            // Hidden ones are not exported.
            metadata["hidden_at"] = Value::Null;
            let mut changes = vec![
                Change::CreateSession(Box::new(row)),
                Change::InsertMessage(MessageRow {
                    id: of.clone(),
                    session_id: id.clone(),
                    seq: Some(1),
                    role: Role::Assistant,
                    metadata: stored(metadata),
                    created_at: 4,
                    updated_at: 5,
                }),
            ];
            let parts = PART_KINDS.iter().enumerate();
            changes.extend(parts.map(|(index, kind)| Change::PutPart(part_row(&id, &of, index, &part_of(kind)))));
            commit(&from, Batch { session_id: id.clone(), fence: None, changes }).await.unwrap();
            let out = jsonl(&from, &id).await.replace("\"hidden_at\":null", "\"hidden_at\":5");
            let (disk, to) = empty_store();
            let authority = if keeps { Authority::Keep } else { Authority::LeaveOut };
            import(read(&out).unwrap(), authority, &to, &to).await.unwrap();
            let stored = to.session(&id).await.unwrap().unwrap();
            assert!(stored.queued.is_empty() && stored.live_run.is_none());
            let mut allowed = vec!["title", "mode"];
            if keeps {
                allowed.extend(["approval", "granted_directories", "additional_directories"]);
            }
            let listed = |(key, value): (&String, &Value)| allowed.contains(&key.as_str()) && !value.is_object();
            assert!(stored.row.metadata.as_map().iter().all(listed), "{:?}", stored.row.metadata);
            let disk = disk.lock().unwrap();
            let message = &disk.messages[&of].metadata;
            for key in ["queued_at", "queue_canceled_at", "queue_enqueued_at", "hidden_at", "permissions", "moving_files"] {
                assert!(!message.as_map().contains_key(key), "{key}");
            }
            let kept: Vec<_> = disk.parts_of(&of).iter().map(|row| (row.kind.clone(), row.data_json.clone())).collect();
            let kinds: Vec<&str> = kept.iter().map(|(kind, _)| kind.as_str()).collect();
            assert_eq!(kinds, PART_KINDS[..16]);
            for (kind, data) in &kept {
                let names_file = data.contains("/w/project/x");
                let shows_files = ["data-command", "data-notice", "data-compaction", "data-usage", "data-plan",
                    "data-file-ref", "data-context"].contains(&kind.as_str());
                assert!(!names_file || shows_files, "{kind}: {data}");
                assert!(kind != "data-snapshot" || data.contains("the session was imported"), "{data}");
            }
        });
    }

    /// A session has a plain name, whoever made it up.
    #[test]
    fn an_id_that_is_no_plain_name_is_refused(id in prop_oneof!["[./a]{1,9}", any::<String>(), Just("/home/ada".to_owned())]) {
        run(async {
            let (_, from) = empty_store();
            let real = rich(&from, &[], 0.5).await;
            let quoted = serde_json::to_string(&id).unwrap();
            let out = jsonl(&from, &real).await.replace("\"ses_0000000000rich\"", &quoted);
            assert_eq!(read(&out).is_ok(), SessionId::new(id.as_str()).is_plain(), "{id:?}");
        });
    }
}

#[test]
fn an_id_that_another_session_has_is_refused_and_stores_nothing() {
    run(async {
        let (disk, store) = empty_store();
        let id = rich(&store, &["a".into()], 0.5).await;
        let out = jsonl(&store, &id).await.replace(id.as_str(), "ses_other");
        let before = rows(&disk);
        let error = imported(&store, &out).await.unwrap_err();
        assert!(matches!(error, ImportError::IdTaken(_)), "{error}");
        assert_eq!(rows(&disk), before);
    });
}

#[test]
fn a_redacted_export_has_neither_secrets_nor_homes_nor_attachments_in_any_format() {
    const SECRET: &str = "ghp_abcDEF0123456789abcDEF0123456789abcd";
    run(async {
        let (_, store) = empty_store();
        let text = format!("token {SECRET} in /home/ada/x\nDB_PASSWORD=hunter22 <b>");
        let id = rich(&store, &[text.clone(), text], 0.5).await;
        for format in Format::ALL {
            let open = written(&store, &id, &ExportStyle::from(format)).await;
            assert!(open.contains(SECRET), "{format:?}");
            let style = ExportStyle { format, redactor: Some(Redactor::default()) };
            let redacted = written(&store, &id, &style).await;
            for secret in [SECRET, "/home/ada", "hunter22", "BwcHBwcH"] {
                assert!(!redacted.contains(secret), "{format:?} has {secret}:\n{redacted}");
            }
            assert!(redacted.contains("[redacted]") && redacted.contains("~/x"), "{format:?}:\n{redacted}");
            if format == Format::Jsonl {
                let (_, to) = empty_store();
                let told = imported(&to, &redacted).await.unwrap();
                assert_eq!((told.blobs, told.missing_blobs), (0, 1));
            }
        }
    });
}
