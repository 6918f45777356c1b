//! The outbox as its connection and its readers use it.

use proptest::prelude::*;

use super::*;

fn session(name: &str) -> StreamName {
    StreamName::Session(name.into())
}

fn put(outbox: &Outbox, session: Option<&str>, text: &str) {
    assert!(outbox.put(session, Bytes::copy_from_slice(text.as_bytes())));
}

async fn texts(reader: &mut OutboxReader) -> Vec<String> {
    match reader.take().await {
        ReadPiece::Messages(messages) => {
            messages.iter().map(|(_, line)| String::from_utf8_lossy(line).into_owned()).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_session_has_the_connections_stream_until_it_has_its_own() {
    let outbox = Outbox::new(usize::MAX);
    put(&outbox, None, "answer");
    put(&outbox, Some("a"), "a1");
    let mut connection = outbox.read(StreamName::Connection).unwrap();
    assert_eq!(texts(&mut connection).await, ["answer", "a1"]);
    put(&outbox, Some("a"), "a2");
    put(&outbox, Some("b"), "b1");
    // What waits moves with the session, so that nothing overtakes it.
    let mut own = outbox.read(session("a")).unwrap();
    put(&outbox, Some("a"), "a3");
    assert_eq!(texts(&mut own).await, ["a2", "a3"]);
    assert_eq!(texts(&mut connection).await, ["b1"]);
    drop(own);
    put(&outbox, Some("a"), "a4");
    assert_eq!(texts(&mut outbox.read(session("a")).unwrap()).await, ["a4"]);
}

#[tokio::test]
async fn who_comes_back_gets_what_follows_and_others_what_nobody_got() {
    let outbox = Outbox::new(usize::MAX);
    for text in ["1", "2", "3"] {
        put(&outbox, None, text);
    }
    let mut first = outbox.read(StreamName::Connection).unwrap();
    assert_eq!(texts(&mut first).await, ["1", "2", "3"]);
    put(&outbox, None, "4");
    assert_eq!(texts(&mut outbox.read_behind(StreamName::Connection, 1).unwrap()).await, ["2", "3", "4"]);
    assert_eq!(texts(&mut first).await, ["4"]);
    put(&outbox, None, "5");
    assert_eq!(texts(&mut outbox.read(StreamName::Connection).unwrap()).await, ["5"]);
    assert!(outbox.can_resume(1) && !outbox.can_resume(6));
    outbox.acknowledge(3);
    assert!(!outbox.can_resume(2) && outbox.can_resume(3));
    let mut late = outbox.read_behind(StreamName::Connection, 2).unwrap();
    assert_eq!(late.take().await, ReadPiece::Reset(5));
    let mut of_another = outbox.read_behind(StreamName::Connection, 77).unwrap();
    assert_eq!(of_another.take().await, ReadPiece::Reset(5));
    outbox.end(OutboxEnd::GoingDown);
    assert_eq!(first.take().await, ReadPiece::Messages(vec![(5, Bytes::from_static(b"5"))]));
    assert_eq!(first.take().await, ReadPiece::End(OutboxEnd::GoingDown));
    assert!(!outbox.put(None, Bytes::new()));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_nobody_reads_holds_up_its_session_alone() {
    let outbox = Outbox::new(usize::MAX);
    let mut own = outbox.read(session("a")).unwrap();
    while tokio::time::timeout(KEPT_TIME, outbox.room_for("a")).await.is_ok() {
        put(&outbox, Some("a"), &"x".repeat(1000));
    }
    let unread = outbox.lock().unread();
    assert!((SESSION_UNREAD_BYTES..SESSION_UNREAD_BYTES + 2000).contains(&unread), "{unread}");
    outbox.room_for("b").await;
    outbox.room().await;
    let waiting = tokio::spawn({
        let outbox = outbox.clone();
        async move { outbox.room_for("a").await }
    });
    texts(&mut own).await;
    waiting.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_was_sent_is_kept_within_its_bounds() {
    let outbox = Outbox::new(usize::MAX);
    let mut reader = outbox.read(StreamName::Connection).unwrap();
    let mut other = outbox.read(session("a")).unwrap();
    put(&outbox, Some("a"), "small");
    texts(&mut other).await;
    for _ in 0..2 * KEPT_BYTES / 10_000 {
        put(&outbox, None, &"x".repeat(10_000));
        texts(&mut reader).await;
    }
    assert!(outbox.lock().kept() <= KEPT_BYTES);
    // Of the larger stream.
    assert!(outbox.lock().sessions["a"].kept() > 0);
    tokio::time::advance(KEPT_TIME * 2).await;
    reader.forget_arrived();
    assert_eq!(outbox.lock().connection.kept(), 0);
    assert!(outbox.can_resume(reader.place()));
}

#[test]
fn streams_are_counted_and_those_that_nobody_needs_make_room() {
    let outbox = Outbox::new(usize::MAX);
    let mut open: Vec<_> =
        (0..SESSION_STREAMS).map(|number| outbox.read(session(&number.to_string())).unwrap()).collect();
    assert_eq!(outbox.read(session("more")).map(drop), Err(TooManyStreams));
    open.pop();
    outbox.read(session("more")).map(drop).unwrap();
}

#[derive(Clone, Debug)]
enum Act {
    Put(Option<u8>),
    Read(Option<u8>),
    /// Cut off, and back with the number it saw last.
    Return(Option<u8>),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let name = prop_oneof![Just(None), (0_u8..3).prop_map(Some)];
    let act = prop_oneof![
        3 => name.clone().prop_map(Act::Put),
        2 => name.clone().prop_map(Act::Read),
        1 => name.prop_map(Act::Return),
    ];
    proptest::collection::vec(act, 1..80)
}

proptest! {
    #[test]
    fn each_message_is_read_once_and_those_of_a_session_in_order(acts in acts()) {
        let outbox = Outbox::new(usize::MAX);
        let mut readers: HashMap<Option<u8>, OutboxReader> = HashMap::new();
        let (mut put, mut got) = (0_u32, Vec::new());
        let stream = |name: Option<u8>| match name {
            None => StreamName::Connection,
            Some(name) => StreamName::Session(name.to_string().into()),
        };
        let read = |reader: &mut OutboxReader, got: &mut Vec<String>| {
            while let Some(ReadPiece::Messages(messages)) = reader.look() {
                got.extend(messages.iter().map(|(_, line)| String::from_utf8_lossy(line).into_owned()));
            }
        };
        for act in acts {
            match act {
                Act::Put(name) => {
                    put += 1;
                    let owner = name.map(|name| name.to_string());
                    let text = format!("{}:{put}", owner.clone().unwrap_or_default());
                    outbox.put(owner.as_deref(), text.into());
                }
                Act::Read(name) => {
                    let reader = readers.entry(name).or_insert_with(|| outbox.read(stream(name)).unwrap());
                    read(reader, &mut got);
                }
                Act::Return(name) => {
                    if let Some(reader) = readers.remove(&name) {
                        let place = reader.place();
                        drop(reader);
                        readers.insert(name, outbox.read_behind(stream(name), place).unwrap());
                    }
                }
            }
        }
        for name in [None, Some(0), Some(1), Some(2)] {
            let reader = readers.entry(name).or_insert_with(|| outbox.read(stream(name)).unwrap());
            read(reader, &mut got);
        }
        prop_assert_eq!(got.len(), put as usize);
        for owner in ["", "0", "1", "2"] {
            let numbers: Vec<u32> = got
                .iter()
                .filter_map(|text| text.split_once(':').filter(|(name, _)| *name == owner)?.1.parse().ok())
                .collect();
            prop_assert!(numbers.is_sorted() && numbers.windows(2).all(|pair| pair[0] != pair[1]));
        }
    }
}
