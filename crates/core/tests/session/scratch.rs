//! What becomes of scratch directories: gone with their session, and a while after its last use.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache_core::ids::SessionId;
use attache_core::limits::SCRATCH_GRACE;
use attache_core::ports::BoxFuture;
use attache_core::ports::scratch::{Scratch, ScratchDirectory};

use super::world::{World, answer, pause, prompt, say, text_of};

/// Directories that are only names, each with when it was touched.
#[derive(Debug, Default)]
struct Shelf(Mutex<BTreeMap<SessionId, i64>>);

impl Shelf {
    fn put(&self, session: &SessionId, touched_at: i64) {
        self.0.lock().unwrap().insert(session.clone(), touched_at);
    }

    fn holds(&self, session: &SessionId) -> bool {
        self.0.lock().unwrap().contains_key(session)
    }
}

impl Scratch for Shelf {
    fn left(&self) -> BoxFuture<'static, io::Result<Vec<ScratchDirectory>>> {
        let left = self.0.lock().unwrap();
        let left = left.iter().map(|(session, touched_at)| ScratchDirectory {
            session: session.clone(),
            touched_at: *touched_at,
        });
        let left = left.collect();
        Box::pin(async { Ok(left) })
    }

    fn remove(&self, session: &SessionId) -> BoxFuture<'static, io::Result<()>> {
        let removed = self.0.lock().unwrap().remove(session);
        Box::pin(async move { removed.map(drop).ok_or_else(|| io::Error::other("it is not there")) })
    }

    fn save(
        &self,
        session: &SessionId,
        name: &str,
        bytes: Vec<u8>,
    ) -> BoxFuture<'static, io::Result<PathBuf>> {
        self.put(session, bytes.len() as i64);
        let path = PathBuf::from(format!("/scratch/{session}/{name}"));
        Box::pin(async move { Ok(path) })
    }

    fn forget(&self, _session: &SessionId) -> BoxFuture<'static, io::Result<()>> {
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test(start_paused = true)]
async fn an_export_is_a_file_in_it() {
    let (world, shelf) = world();
    let (_process, session) = world.session().await;
    say(&session, "hello").await;
    say(&session, "/export HTML").await;
    let answer = |world: &World| text_of(world.answers(session.id()).last().unwrap());
    let told = answer(&world);
    assert!(told.starts_with(&format!("Exported to `/scratch/{}/session.html`.", session.id())), "{told}");
    assert!(shelf.holds(session.id()));
    say(&session, "/export pdf").await;
    let told = answer(&world);
    assert!(told.starts_with("There is no format `pdf`; available: `jsonl`, `json`, `md`"), "{told}");
    say(&session, "/usage").await;
    assert!(answer(&world).contains("| Input |") && answer(&world).contains("Cost: not known"));
}

fn world() -> (World, Arc<Shelf>) {
    let shelf = Arc::new(Shelf::default());
    let script = "on \"hang\"\n call id=h hang {\"path\":\"a\"}\non *\n text \"fine\"";
    (World::new(script).with_scratch(shelf.clone()), shelf)
}

const HOUR: Duration = Duration::from_secs(60 * 60);

#[tokio::test(start_paused = true)]
async fn it_goes_with_its_session() {
    let (world, shelf) = world();
    let (process, session) = world.session().await;
    shelf.put(session.id(), world.clock().now_ms());
    process.hub.delete(session.id()).await.unwrap();
    assert!(!shelf.holds(session.id()));
    // One that never had any, and what can't be removed, keep no session alive.
    let other = process.create().await;
    process.hub.delete(other.id()).await.unwrap();
    assert!(process.hub.open(other.id()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn it_stays_for_a_week_after_the_session_was_closed() {
    let (world, shelf) = world();
    let (process, session) = world.session().await;
    answer(session.prompt(prompt("go"))).await.unwrap();
    shelf.put(session.id(), world.clock().now_ms());
    session.close().await.unwrap();
    tokio::time::advance(SCRATCH_GRACE - HOUR).await;
    process.hub.remove_old_scratch().await.unwrap();
    assert!(shelf.holds(session.id()));
    tokio::time::advance(2 * HOUR).await;
    process.hub.remove_old_scratch().await.unwrap();
    assert!(!shelf.holds(session.id()));
}

#[tokio::test(start_paused = true)]
async fn it_stays_while_the_session_is_open_here_or_runs_elsewhere() {
    let (world, shelf) = world();
    let (process, idle) = world.session().await;
    let running = process.create().await;
    let ticket = running.prompt(prompt("hang"));
    pause(50).await;
    for session in [&idle, &running] {
        shelf.put(session.id(), world.clock().now_ms());
    }
    tokio::time::advance(2 * SCRATCH_GRACE).await;
    process.hub.remove_old_scratch().await.unwrap();
    assert!(shelf.holds(idle.id()) && shelf.holds(running.id()));
    let other = world.process();
    other.hub.remove_old_scratch().await.unwrap();
    assert!(!shelf.holds(idle.id()), "nobody has used it");
    assert!(shelf.holds(running.id()));
    drop(ticket);
}

#[tokio::test(start_paused = true)]
async fn one_that_was_used_lately_stays_whoever_it_belongs_to() {
    let (world, shelf) = world();
    let process = world.process();
    let [old, new] = ["ses_of_nobody", "ses_of_another_database"].map(SessionId::new);
    shelf.put(&old, world.clock().now_ms());
    tokio::time::advance(SCRATCH_GRACE + HOUR).await;
    shelf.put(&new, world.clock().now_ms());
    process.hub.remove_old_scratch().await.unwrap();
    assert!(!shelf.holds(&old) && shelf.holds(&new));
}
