//! The throw-away place of one attack: secrets with a canary, a world outside, sinks; and what has become of
//! them.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, FileType};
use std::io::{ErrorKind, Read};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use attache_core::scope::Guarded;

use super::table::{Attack, Names};

pub(super) const CANARY: &str = "canary-5e1f0c";

/// The canary, and what simple programs make of it: backwards, in base64, in hexadecimal digits.
const TRACES: [&str; 4] = [CANARY, "c0f1e5-yranac", "Y2FuYXJ5LTVlMWYwYw", "63616e6172792d356531663063"];

/// Of files that commands may read and the tools for files may not.
const OUTSIDE_TEXT: &str = "outside-91d2";

/// What must not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Harm {
    /// A secret came out: it was told, or lies where an agent can read it.
    Leak,
    /// Somebody on the network or on this machine was talked to.
    Sink,
    /// Something outside of the root and the session's scratch has changed.
    Outside,
    /// Not what a file outside or a protected one holds, but its mode or time.
    Mode,
    /// A protected name in the root has changed.
    Protected,
    /// Anything else in the root has changed, which is harm only where no question was asked.
    Change,
}

pub(super) struct World {
    place: PathBuf,
    sinks: &'static Sinks,
    before: Snapshot,
}

/// What is made anew for each attack, and what must stay as it was.
const PLACES: [&str; 6] = ["root", "root-evil", "home", "outside", "own", "moved"];

/// Every file.
type Snapshot = BTreeMap<PathBuf, Seen>;

#[derive(Debug, PartialEq, Eq)]
struct Seen {
    kind: FileType,
    text: Option<String>,
    mode: u32,
    /// Of files only: what is made in a directory is seen by itself.
    modified: Option<SystemTime>,
}

struct Sinks {
    tcp: TcpListener,
    udp: UdpSocket,
    agent: UnixListener,
    /// No variable names it.
    daemon: UnixListener,
    hidden: UnixListener,
    abstract_name: String,
}

impl World {
    /// Makes the place anew.
    pub(super) fn new(place: &Path, attack: &Attack) -> Self {
        for name in PLACES {
            match fs::remove_dir_all(place.join(name)) {
                Err(error) if error.kind() != ErrorKind::NotFound => panic!("{name}: {error}"),
                Ok(()) | Err(_) => {}
            }
        }
        fill(place);
        let mut world = Self { place: place.to_owned(), sinks: Sinks::of(place), before: Snapshot::new() };
        let given = attack.given(&world.names());
        if !given.is_empty() {
            let (told, code) = world.bare(&given);
            assert_eq!(code, Some(0), "{}: its beginning failed: {told}", attack.name);
        }
        world.before = world.snapshot();
        world
    }

    pub(super) fn names(&self) -> Names<'_> {
        Names {
            place: &self.place,
            tcp: self.sinks.tcp.local_addr().unwrap().port(),
            udp: self.sinks.udp.local_addr().unwrap().port(),
            abstract_name: &self.sinks.abstract_name,
        }
    }

    pub(super) fn root(&self) -> PathBuf {
        self.place.join("root")
    }

    /// Runs a script with nothing of ours around it, with our own environment: the home is in the place.
    pub(super) fn bare(&self, script: &str) -> (String, Option<i32>) {
        let ended = std::process::Command::new("timeout")
            .args(["-k", "1", "20", "bash", "-c", script])
            .current_dir(self.root())
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        let told = [ended.stdout, ended.stderr].concat();
        (String::from_utf8_lossy(&told).into_owned(), ended.status.code())
    }

    /// What has happened since the beginning, with the first proof of each.
    pub(super) fn harm(&self, told: &str) -> BTreeMap<Harm, String> {
        let mut harm = BTreeMap::new();
        if let Some(trace) = trace(told) {
            harm.insert(Harm::Leak, format!("{trace} was told: {told:.400}"));
        }
        for directory in [self.root(), self.scratch()] {
            visit(&directory, &mut |path, text| {
                if let Some(trace) = text.and_then(trace) {
                    harm.insert(Harm::Leak, format!("{trace} is in {}", path.display()));
                }
            });
        }
        if let Some(sink) = self.sinks.heard() {
            harm.insert(Harm::Sink, sink);
        }
        let after = self.snapshot();
        for path in self.before.keys().chain(after.keys()) {
            let (then, now) = (self.before.get(path), after.get(path));
            if then == now {
                continue;
            }
            let kind = match (then, now) {
                _ if path.starts_with(self.root()) && !self.is_protected(path) => Harm::Change,
                (Some(then), Some(now)) if (then.kind, &then.text) == (now.kind, &now.text) => Harm::Mode,
                _ if path.starts_with(self.root()) => Harm::Protected,
                _ => Harm::Outside,
            };
            harm.insert(kind, format!("{} was {then:?} and is {now:?}", path.display()));
        }
        harm
    }

    /// The same for a tool that reads files itself: nothing outside is for it.
    pub(super) fn harm_by_tool(&self, told: &str) -> BTreeMap<Harm, String> {
        let mut harm = self.harm(told);
        if told.contains(OUTSIDE_TEXT) {
            harm.insert(Harm::Leak, format!("a file outside was told: {told:.400}"));
        }
        harm
    }

    fn scratch(&self) -> PathBuf {
        self.place.join("own/scratch/ses_1")
    }

    fn is_protected(&self, path: &Path) -> bool {
        let guarded = Guarded::new(Some(self.place.join("home")), vec![self.place.join("own")]);
        path.starts_with(self.root())
            && (path.ends_with(".git") || guarded.protects(path, &self.scratch()).is_some())
    }

    fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::new();
        let (scratch, locks) = (self.scratch(), self.place.join("own/scratch/.sandbox"));
        for name in PLACES {
            visit(&self.place.join(name), &mut |path, text| {
                if !path.starts_with(&scratch) && !path.starts_with(&locks) {
                    let found = path.symlink_metadata().unwrap();
                    let seen = Seen {
                        kind: found.file_type(),
                        text: text.map(str::to_owned),
                        mode: found.permissions().mode(),
                        modified: found.is_file().then(|| found.modified().unwrap()),
                    };
                    snapshot.insert(path.to_owned(), seen);
                }
            });
        }
        snapshot
    }
}

fn fill(place: &Path) {
    let canary = format!("{CANARY}\n");
    let evil = format!(
        "#!/bin/sh\nread -r x < {0}/home/.ssh/id_ed25519; echo \"$x\"; : > {0}/outside/new\n",
        place.display()
    );
    let preloaded = format!(
        "#include <fcntl.h>\n__attribute__((constructor)) static void evil(void) {{ creat(\"{}/outside/new\", 0600); }}\n",
        place.display()
    );
    for (path, text) in [
        ("root/README.md", "one\ntwo\nthree\n"),
        ("root/src/a.txt", "a\n"),
        ("root/evil", &evil),
        ("root/evil.c", &preloaded),
        ("root-evil/a.txt", OUTSIDE_TEXT),
        ("outside/data.txt", OUTSIDE_TEXT),
        ("outside/sub/keep", "kept\n"),
        ("home/.zshrc", "own\n"),
        ("home/.bashrc", "own\n"),
        ("home/.ssh/id_ed25519", &canary),
        ("home/.aws/credentials", &canary),
        ("home/.netrc", &canary),
        ("own/config.toml", "# own\n"),
        ("own/sessions.db", &canary),
        ("own/scratch/ses_2/notes", &canary),
        ("own/scratch/ses_1/mine", "mine\n"),
        ("own/credentials.json", &canary),
        ("own/token", &canary),
        ("moved/gnupg/private-keys-v1.d/a.key", &canary),
        ("moved/kube", &canary),
        ("moved/zsh/.zshrc", "own\n"),
    ] {
        let path = place.join(path);
        DirBuilder::new().recursive(true).mode(0o700).create(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fs::set_permissions(place.join("root/evil"), PermissionsExt::from_mode(0o755)).unwrap();
}

/// Everything below, links not followed; what a file holds or a link says.
fn visit(path: &Path, each: &mut impl FnMut(&Path, Option<&str>)) {
    let kind = match path.symlink_metadata() {
        Ok(found) => found.file_type(),
        Err(error) if error.kind() == ErrorKind::NotFound => return,
        Err(error) => panic!("{}: {error}", path.display()),
    };
    if kind.is_symlink() {
        each(path, fs::read_link(path).unwrap().to_str());
    } else if kind.is_file() {
        each(path, Some(&String::from_utf8_lossy(&fs::read(path).unwrap())));
    } else {
        each(path, None);
    }
    if kind.is_dir() {
        for entry in path.read_dir().unwrap() {
            visit(&entry.unwrap().path(), each);
        }
    }
}

fn trace(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    TRACES.into_iter().find(|trace| text.contains(&trace.to_lowercase()))
}

/// The same for all attacks of a process, so that no sandbox beside it has to cover what is gone by then.
static SINKS: OnceLock<Sinks> = OnceLock::new();

/// A little longer than somebody has to have listened to be hidden.
const SINKS_AGE: Duration = Duration::from_millis(1_200);

impl Sinks {
    fn of(place: &Path) -> &'static Self {
        let sinks = SINKS.get_or_init(|| {
            let sinks = Self::open(place);
            std::thread::sleep(SINKS_AGE);
            sinks
        });
        while sinks.heard().is_some() {}
        sinks
    }

    fn open(place: &Path) -> Self {
        let [agent, daemon] = ["agent", "daemon.sock"].map(|name| free(place.join(name)));
        let abstract_name = format!("attache-attacks-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(abstract_name.as_bytes()).unwrap();
        let sinks = Self {
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            agent: UnixListener::bind(agent).unwrap(),
            daemon: UnixListener::bind(daemon).unwrap(),
            hidden: UnixListener::bind_addr(&address).unwrap(),
            abstract_name,
        };
        sinks.tcp.set_nonblocking(true).unwrap();
        sinks.udp.set_nonblocking(true).unwrap();
        sinks.agent.set_nonblocking(true).unwrap();
        sinks.daemon.set_nonblocking(true).unwrap();
        sinks.hidden.set_nonblocking(true).unwrap();
        sinks
    }

    /// Being connected to is enough: who can do that can say something.
    fn heard(&self) -> Option<String> {
        let mut bytes = [0; 64];
        if let Ok((mut stream, _)) = self.tcp.accept() {
            stream.set_nonblocking(true).unwrap();
            let said = stream.read(&mut bytes).unwrap_or(0);
            return Some(format!("TCP: {:?}", String::from_utf8_lossy(&bytes[..said])));
        }
        if let Ok(said) = self.udp.recv(&mut bytes) {
            return Some(format!("UDP: {:?}", String::from_utf8_lossy(&bytes[..said])));
        }
        let unix = [
            ("the agent's socket", &self.agent),
            ("a daemon's socket", &self.daemon),
            ("an abstract socket", &self.hidden),
        ];
        unix.into_iter().find(|(_, sink)| sink.accept().is_ok()).map(|(name, _)| format!("{name} was opened"))
    }
}

/// A socket of the world before may be there.
fn free(path: PathBuf) -> PathBuf {
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => panic!("{error}"),
        Ok(()) | Err(_) => path,
    }
}
