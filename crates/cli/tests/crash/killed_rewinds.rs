//! SIGKILL inside a rewind, one that is taken back, the files that follow it, and a fork: the next process
//! finds all of it or nothing of it, and nothing twice.

use std::time::Duration;

use attache_testkit::binary::{Agent, Home};
use attache_testkit::database::connect;
use serde_json::{Value, json};

use crate::story::{started, times_to_kill, user_messages};

/// Kills of each kind, in a test run.
const KILLS: u32 = 8;

/// With fewer kills between two files than one in this many, something is wrong with the test.
const KILLS_PER_MEETING: u32 = 8;

/// Files that each turn writes: enough that a kill falls between two of them.
const FILES: usize = 12;

const TURNS: [&str; 3] = ["one", "two", "three"];

/// Microseconds from a request to the kill, at most: longer than the whole of it takes.
const LATEST_KILL: u64 = 25_000;

/// The same from the moment on in which files begin to move.
const LATEST_KILL_OF_FILES: u64 = 4_000;

/// How long a rewind may take until its files move, or until it is over.
const FILES_MOVE: Duration = Duration::from_millis(500);

/// When the next process of a kind is killed, at the latest: so that about as many die before the commit as
/// behind it, whatever the machine does beside.
#[derive(Clone, Copy)]
struct Aim(u64);

impl Aim {
    fn corrected(self, was_done: bool) -> Self {
        match was_done {
            true => Self((self.0 * 4 / 5).max(200)),
            false => Self((self.0 * 3 / 2).min(LATEST_KILL)),
        }
    }
}

fn script() -> String {
    let turn = |name: &&str| {
        let write = |file: usize| {
            let input = json!({"path": format!("dir/{file}.txt"), "content": content(name, file)});
            format!("  call write {input}\n")
        };
        format!("on \"{name}\"\n{}  ---\n  text \"done\"\n", (0..FILES).map(write).collect::<String>())
    };
    TURNS.iter().map(turn).collect()
}

fn content(turn: &str, file: usize) -> String {
    format!("{turn} {file}\n")
}

/// Small and repeatable; a failure names its seed, which `TEST_KILL_SEED` takes.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// The files as they are after that many turns.
fn check_files(home: &Home, turns: usize, about: &str) {
    let directory = home.workspace().join("dir");
    // Between its first name and its last a file has one of ours: a kill in that moment leaves it behind.
    let is_ours = |name: &str| name.starts_with(".attache-") && name.ends_with(".tmp");
    let entries = directory.read_dir().into_iter().flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let count = names.filter(|name| !is_ours(name)).count();
    let Some(last) = turns.checked_sub(1) else {
        return assert_eq!(count, 0, "{about}: what the first turn made is still there");
    };
    for file in 0..FILES {
        let found = std::fs::read_to_string(directory.join(format!("{file}.txt"))).unwrap_or_default();
        assert_eq!(found, content(TURNS[last], file), "{about}: file {file} after {turns} turns");
    }
    assert_eq!(count, FILES, "{about}: something was left behind");
}

/// The conversation as the next process tells it, and the files that belong to it.
async fn check(home: &Home, agent: &Agent, session: &str, about: &str) -> usize {
    let story = agent.load(session, &home.workspace()).await;
    let told = user_messages(&story);
    assert_eq!(told, TURNS[..told.len()], "{about}");
    check_files(home, told.len(), about);
    told.len()
}

/// Every copy has all messages of its origin, each with all parts, or is not there.
fn check_copies(home: &Home, about: &str) -> i64 {
    let database = connect(home);
    let broken: i64 = database
        .query_row(
            "SELECT count(*) FROM chat_sessions AS copy WHERE copy.parent_id IS NOT NULL AND \
             ((SELECT count(*) FROM chat_messages WHERE session_id = copy.id) <> 6 OR \
             (SELECT count(*) FROM chat_parts WHERE session_id = copy.id) <> \
             (SELECT count(*) FROM chat_parts WHERE session_id = copy.parent_id))",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(broken, 0, "{about}: a copy is not whole");
    database
        .query_row("SELECT count(*) FROM chat_sessions WHERE parent_id IS NOT NULL", [], |row| row.get(0))
        .unwrap()
}

/// Whether the rows say that files are to follow.
fn is_moving_files(home: &Home, session: &str) -> bool {
    connect(home)
        .query_row(
            "SELECT json_extract(metadata_json, '$.moving_files') IS NOT NULL FROM chat_sessions WHERE id = ?1",
            [session],
            |row| row.get(0),
        )
        .unwrap()
}

/// Comes back when files begin to move; after a while, too, if they were faster.
async fn until_files_move(home: &Home, session: &str) {
    let database = connect(home);
    let mut is_moving = database
        .prepare("SELECT json_extract(metadata_json, '$.moving_files') IS NOT NULL FROM chat_sessions WHERE id = ?1")
        .unwrap();
    let deadline = tokio::time::Instant::now() + FILES_MOVE;
    while tokio::time::Instant::now() < deadline {
        if is_moving.query_row([session], |row| row.get(0)).unwrap() {
            return;
        }
        // Not a sleep: that would take as long as all of the files.
        tokio::task::yield_now().await;
    }
}

async fn talk(home: &Home) -> (String, Vec<Value>) {
    let agent = started(home).await;
    agent.client.always_choose("allow_once");
    let session = agent.new_session(&home.workspace()).await;
    let mut messages = Vec::new();
    for turn in TURNS {
        let answer = agent.prompt(&session, turn).await.unwrap();
        messages.push(answer["_meta"]["attache/messageId"].clone());
    }
    agent.finish(home).await;
    (session, messages)
}

/// What is under way when the process is killed. The first two move files.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Killed {
    Rewind,
    Unrewind,
    Fork,
}

/// Brings a session to where this can be asked for; gives how many turns are visible then.
async fn prepare(agent: &Agent, session: &str, messages: &[Value], visible: usize, kind: Killed) -> usize {
    let is_whole = visible == TURNS.len();
    if is_whole == (kind != Killed::Unrewind) {
        return visible;
    }
    let (method, params, visible) = match is_whole {
        true => ("_attache/session/rewind", json!({"sessionId": session, "messageId": messages[0]}), 0),
        false => ("_attache/session/unrewind", json!({"sessionId": session}), TURNS.len()),
    };
    agent.client.request(method, params).await.unwrap();
    visible
}

fn seed() -> u64 {
    let seed = std::env::var("TEST_KILL_SEED").ok().and_then(|seed| seed.parse().ok());
    seed.unwrap_or_else(|| u64::from(std::process::id()))
}

/// Between two files of a rewind, or of one that is taken back: the next process moves the rest before it shows
/// the session to anybody.
#[tokio::test]
async fn a_kill_between_two_files_leaves_none_behind() {
    let seed = seed();
    let mut random = Random(seed);
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), &script());
    let (session, messages) = talk(&home).await;
    let wanted = times_to_kill(KILLS);
    let (mut visible, mut kills, mut meetings) = (TURNS.len(), 0, 0);
    while meetings < wanted {
        assert!(
            kills < wanted * KILLS_PER_MEETING,
            "seed {seed}: only {meetings} of {kills} kills met files"
        );
        let about = format!("seed {seed}, kill {kills}");
        let mut agent = started(&home).await;
        assert_eq!(check(&home, &agent, &session, &about).await, visible, "{about}: what was found stays");
        let (method, params, after) = match visible == TURNS.len() {
            true => {
                let to = random.below(TURNS.len() as u64) as usize;
                ("_attache/session/rewind", json!({"sessionId": session, "messageId": messages[to]}), to)
            }
            false => ("_attache/session/unrewind", json!({"sessionId": session}), TURNS.len()),
        };
        drop(agent.client.start(method, params));
        until_files_move(&home, &session).await;
        tokio::time::sleep(Duration::from_micros(random.below(LATEST_KILL_OF_FILES))).await;
        agent.kill().await;
        agent.client.wait_for_end().await;
        agent.client.finish_cut();
        kills += 1;
        meetings += u32::from(is_moving_files(&home, &session));
        let next = started(&home).await;
        visible = check(&home, &next, &session, &about).await;
        assert_eq!(visible, after, "{about}: the rows were committed before any file moved");
        assert!(!is_moving_files(&home, &session), "{about}: nothing is left to do");
        next.finish(&home).await;
    }
    println!("{kills} kills, {meetings} of them between two files");
}

#[tokio::test]
async fn a_kill_leaves_rewinds_and_copies_whole() {
    let seed = seed();
    let mut random = Random(seed);
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), &script());
    let (session, messages) = talk(&home).await;
    check_files(&home, TURNS.len(), "at the beginning");
    let (mut visible, mut aims) = (TURNS.len(), [Aim(LATEST_KILL / 4); 3]);
    let wanted_kills = times_to_kill(KILLS) * 3;
    // Of each kind, how many died before the commit and behind it.
    let (mut sides, mut in_files) = ([(0, 0); 3], 0);
    for kill in 0..wanted_kills * KILLS_PER_MEETING {
        let has_met_both = sides.iter().all(|(before, after)| *before > 0 && *after > 0);
        if kill >= wanted_kills && has_met_both {
            break;
        }
        let kind = [Killed::Rewind, Killed::Unrewind, Killed::Fork][kill as usize % 3];
        let about = format!("seed {seed}, kill {kill}, {kind:?}");
        let mut agent = started(&home).await;
        assert_eq!(check(&home, &agent, &session, &about).await, visible, "{about}: what was found stays");
        let copies = check_copies(&home, &about);
        visible = prepare(&agent, &session, &messages, visible, kind).await;
        let (method, params, wanted) = match kind {
            Killed::Rewind => {
                let to = random.below(TURNS.len() as u64) as usize;
                ("_attache/session/rewind", json!({"sessionId": session, "messageId": messages[to]}), to)
            }
            Killed::Unrewind => ("_attache/session/unrewind", json!({"sessionId": session}), TURNS.len()),
            Killed::Fork => ("session/fork", json!({"sessionId": session, "cwd": home.workspace()}), visible),
        };
        drop(agent.client.start(method, params));
        let aim = &mut aims[kill as usize % 3];
        tokio::time::sleep(Duration::from_micros(random.below(aim.0))).await;
        agent.kill().await;
        agent.client.wait_for_end().await;
        agent.client.finish_cut();
        in_files += i32::from(is_moving_files(&home, &session));
        let next = started(&home).await;
        let found = check(&home, &next, &session, &about).await;
        assert!(found == visible || found == wanted, "{about}: {found} turns are neither before nor after");
        let made = check_copies(&home, &about) - copies;
        assert!(made <= i64::from(kind == Killed::Fork), "{about}: a copy was made twice");
        let is_done = if kind == Killed::Fork { made == 1 } else { found == wanted };
        *aim = aim.corrected(is_done);
        let (before, after) = &mut sides[kill as usize % 3];
        *(if is_done { after } else { before }) += 1;
        visible = found;
        next.finish(&home).await;
    }
    let met = format!(
        "{sides:?} kills (before the commit, behind it) of rewinds, of ones taken back, and of forks"
    );
    assert!(sides.iter().all(|(before, after)| *before > 0 && *after > 0), "seed {seed}: only {met}");
    println!("{met}; {in_files} of them while files were moved");
}
