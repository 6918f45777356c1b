//! What the sandbox holds alone: every test here lets each command pass.

use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use attache_core::ports::ToolOutcome;
use attache_core::ports::tool::{NetworkGrant, Workspace, WriteGrant};
use attache_sandbox::Level;
use serde_json::json;

use crate::trial::{Alone, Trial, alone, names};

const CANARY: &str = "canary-7f3a";

/// Output and exit code of a command that could be started.
async fn run(trial: &Trial, command: &str) -> (String, i64) {
    run_with(trial, command, NetworkGrant::Withheld).await
}

async fn run_with(trial: &Trial, command: &str, network: NetworkGrant) -> (String, i64) {
    let mut runtime = trial.runtime();
    runtime.network = network;
    match trial.tool("bash").run(json!({"command": command}), runtime).await {
        ToolOutcome::Output { data, presentation } => {
            let text = data.as_str().unwrap();
            let code = presentation.metadata.unwrap().exit_code.unwrap();
            (text[..text.len() - presentation.note_bytes].to_owned(), code.into())
        }
        ToolOutcome::Error { text, .. } => panic!("{command}: {text}"),
        picture @ ToolOutcome::Picture { .. } => panic!("{command}: {picture:?}"),
    }
}

async fn refused(trial: &Trial, command: &str) -> String {
    let (output, code) = run(trial, command).await;
    assert_ne!(code, 0, "{command} succeeded: {output}");
    output
}

async fn done(trial: &Trial, command: &str) -> String {
    let (output, code) = run(trial, command).await;
    assert_eq!(code, 0, "{command} failed: {output}");
    output
}

fn repository(root: &Path) {
    let git = root.join(".git");
    std::fs::create_dir_all(git.join("objects")).unwrap();
    std::fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    std::fs::write(git.join("config"), "[core]\n\trepositoryformatversion = 0\n").unwrap();
}

const LEVELS: [Level; 2] = [Level::Full, Level::Reduced];

#[tokio::test]
async fn roots_grants_and_scratch_are_writable_and_nothing_else() {
    for level in LEVELS {
        let trial = Trial::held(level);
        let (outside, granted, home) =
            (trial.base.join("outside"), trial.base.join("granted"), trial.base.join("home"));
        std::fs::create_dir(&outside).unwrap();
        std::fs::create_dir(&granted).unwrap();
        done(&trial, "echo in > a && mkdir -p d/e && mv a d/e/b && echo tmp > $TMPDIR/x && rm $TMPDIR/x")
            .await;
        assert_eq!(trial.text("d/e/b"), "in\n");
        for target in [&outside, &home, &granted, Path::new("/usr"), Path::new("/etc"), Path::new("/var/lib")]
            .map(|path| path.join("x"))
        {
            run(
                &trial,
                &format!(
                    "echo out > {0}; ln -s {0} link-{1}; echo out > link-{1}",
                    target.display(),
                    target.to_string_lossy().len()
                ),
            )
            .await;
            assert!(!target.exists(), "{level:?}: {}", target.display());
        }
        let mut runtime = trial.runtime();
        runtime.site.granted = [granted.clone()].into();
        let input = json!({"command": format!("echo in > {}/x", granted.display())});
        trial.tool("bash").run(input, runtime).await;
        assert!(granted.join("x").exists(), "{level:?}");
    }
}

#[tokio::test]
async fn ordinary_work_goes_on() {
    for level in LEVELS {
        let trial = Trial::held(level);
        let output = done(
            &trial,
            "printf '#include <stdio.h>\\nint main() { puts(\"built\"); }\\n' > a.c && cc a.c -o a && ./a && \
             echo x | cat > /dev/null && ls /usr > /dev/null && git --version > /dev/null && (sleep 0 & wait)",
        )
        .await;
        assert_eq!(output, "built\n", "{level:?}");
    }
}

#[tokio::test]
async fn what_nobody_was_asked_about_does_not_fill_the_disk() {
    for level in LEVELS {
        let trial = Trial::held(level);
        let mut runtime = trial.runtime();
        runtime.writes = WriteGrant::Withheld;
        let command = "yes > $TMPDIR/f; stat -c %s $TMPDIR/f";
        let outcome = trial.tool("bash").run(json!({"command": command}), runtime).await;
        let ToolOutcome::Output { data, .. } = outcome else { panic!("{level:?}") };
        let output = data.as_str().unwrap();
        assert!(output.contains(&format!("\n{}\n", 64 << 20)), "{level:?}: {output}");
        assert!(output.contains("a file in $TMPDIR can have 64 MiB"), "{level:?}: {output}");
    }
    let trial = Trial::held(Level::Full);
    let mut runtime = trial.runtime();
    runtime.writes = WriteGrant::Withheld;
    let many = "for i in 1 2 3 4 5 6 7 8; do head -c 60M /dev/zero > $TMPDIR/$i; done; sleep 20";
    let outcome = trial.tool("bash").run(json!({"command": many}), runtime).await;
    let ToolOutcome::Error { text, .. } = outcome else { panic!("{outcome:?}") };
    assert!(text.contains("more than 256 MiB to $TMPDIR"), "{text}");
    // What was allowed may write more.
    let size = done(&trial, "head -c 70M /dev/zero > big; stat -c %s big").await;
    assert_eq!(size, format!("{}\n", 70 << 20));
}

#[tokio::test]
async fn what_nobody_was_asked_about_writes_nothing_but_its_scratch() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    tcp.set_nonblocking(true).unwrap();
    for level in LEVELS {
        let trial = Trial::held(level);
        trial.put("a", "own");
        let granted = trial.base.join("granted");
        std::fs::create_dir(&granted).unwrap();
        let mut runtime = trial.runtime();
        runtime.writes = WriteGrant::Withheld;
        runtime.network = NetworkGrant::Granted;
        runtime.site.granted = [granted.clone()].into();
        let command = format!(
            "echo x > a; echo x > b; rm a; chmod 777 a; mv a c; mkdir .git; echo x > {}/x; ls -A; \
             (echo > /dev/tcp/127.0.0.1/{}); echo tmp > $TMPDIR/x && cat $TMPDIR/x && cat a",
            granted.display(),
            tcp.local_addr().unwrap().port()
        );
        let ToolOutcome::Output { data, .. } =
            trial.tool("bash").run(json!({"command": command}), runtime).await
        else {
            panic!("{level:?}")
        };
        let output = data.as_str().unwrap();
        assert_eq!((trial.names(), trial.text("a")), (vec!["a".to_owned()], "own".to_owned()), "{level:?}");
        assert_eq!(names(&granted), Vec::<String>::new(), "{level:?}");
        assert!(tcp.accept().is_err(), "{level:?}");
        assert!(output.contains("\na\n") && output.contains("tmp\nown"), "no place-holder is seen: {output}");
        if level == Level::Full {
            assert!(output.contains("ran without a question because it seems to only read"), "{output}");
        }
    }
}

/// Not run as an ordinary user: the toolchain of who runs the tests is not theirs.
#[tokio::test]
async fn cargo_builds_in_a_home_that_it_can_not_write() {
    for level in LEVELS {
        let trial = Trial::held(level);
        let output = done(
            &trial,
            "mkdir src && printf 'fn main() { println!(\"built\"); }\\n' > src/main.rs && \
             printf '[package]\\nname = \"tiny\"\\nversion = \"0.1.0\"\\nedition = \"2021\"\\n' > Cargo.toml && \
             cargo build -q --offline && ./target/debug/tiny",
        )
        .await;
        assert!(output.ends_with("built\n"), "{level:?}: {output}");
    }
}

#[tokio::test]
async fn secrets_are_not_seen() {
    let canaries = [("CANARY_API_KEY", CANARY), ("GITHUB_TOKEN", CANARY)];
    if alone("sandbox::secrets_are_not_seen", &canaries) == Alone::Done {
        return;
    }
    for level in LEVELS {
        let trial = Trial::held(level);
        let home = trial.base.join("home");
        std::fs::create_dir(home.join(".ssh")).unwrap();
        for file in [home.join(".ssh/id_ed25519"), home.join(".netrc"), trial.base.join("own/sessions.db")] {
            std::fs::write(file, CANARY).unwrap();
        }
        std::os::unix::fs::symlink(home.join(".ssh"), home.join("keys")).unwrap();
        let places = format!(
            "cat {0}/.ssh/* {0}/.netrc {0}/keys/* {1}/own/sessions.db; ln -s {0}/.ssh s; cat s/*; \
             cp {0}/.netrc n; cat n; ln {0}/.netrc hard; cat hard; cat /proc/$PPID/environ /proc/[0-9]*/environ | tr '\\0' '\\n'; env",
            home.display(),
            trial.base.display()
        );
        let (output, _) = run(&trial, &places).await;
        assert!(!output.contains(CANARY), "{level:?}: {output}");
        let (output, _) = run(&trial, "cat /etc/shadow /etc/gshadow").await;
        assert!(!output.contains("root:"), "{level:?}");
        let workspace = Workspace { root: home.clone(), ..(*trial.workspace).clone() };
        let mut trial = trial;
        trial.workspace = Arc::new(workspace);
        if level == Level::Full {
            let (output, _) =
                run(&trial, "cat .ssh/* .netrc; mv .ssh t; cat t/*; rm -f .netrc; cat .netrc").await;
            assert!(!output.contains(CANARY), "a root of which a part is hidden: {output}");
            assert_eq!(std::fs::read_to_string(home.join(".netrc")).unwrap(), CANARY);
        }
    }
}

#[tokio::test]
async fn what_runs_or_rules_stays_as_it_is() {
    let trial = Trial::held(Level::Full);
    repository(&trial.root);
    std::fs::create_dir_all(trial.root.join(".vscode")).unwrap();
    std::fs::write(trial.root.join(".vscode/tasks.json"), "{}").unwrap();
    let nested = trial.root.join("packages/a");
    std::fs::create_dir_all(&nested).unwrap();
    repository(&nested);
    let before = std::fs::read_to_string(trial.root.join(".git/config")).unwrap();
    for command in [
        "mkdir -p .git/hooks; echo x > .git/hooks/pre-commit",
        "echo x >> .git/config",
        "rm -f .git/config",
        "echo x > c && mv c .git/config",
        "mv .git g",
        "rm -rf .git/hooks && mkdir .git/hooks && echo x > .git/hooks/pre-commit",
        "echo x > .git/config.worktree",
        "echo x > .mcp.json",
        "mkdir -p .claude && echo x > .claude/settings.json",
        "rmdir .claude && mkdir .claude && echo x > .claude/settings.json",
        "echo x > .vscode/tasks.json",
        "mv .vscode v",
        "mkdir -p .attache && echo x > .attache/config.toml",
        "mkdir -p .cargo && echo x > .cargo/config.toml",
        "echo x > packages/a/.git/config",
        "mkdir -p packages/a/.git/hooks && echo x > packages/a/.git/hooks/x",
        "mv packages/a/.git packages/a/g",
        "mount -t tmpfs none .git",
        "umount .git",
        "unshare -rm umount .git",
    ] {
        refused(&trial, command).await;
    }
    // What is made writable by force does not count.
    run(
        &trial,
        "chmod u+w .claude .git/hooks; echo x > .claude/settings.json; echo x > .git/hooks/pre-commit",
    )
    .await;
    assert_eq!(std::fs::read_to_string(trial.root.join(".git/config")).unwrap(), before);
    assert_eq!(std::fs::read_to_string(trial.root.join(".vscode/tasks.json")).unwrap(), "{}");
    done(&trial, "echo x > .git/objects/x && echo y > .git/index && rm .git/index").await;
    assert_eq!(names(&trial.root.join(".git")), ["HEAD", "config", "objects"]);
    let left: Vec<_> = trial.names().into_iter().filter(|name| name.starts_with('.')).collect();
    assert_eq!(left, [".git", ".vscode"], "place-holders are removed");
}

#[tokio::test]
async fn shell_profiles_of_a_home_that_is_a_root_stay_as_they_are() {
    let trial = Trial::held(Level::Full);
    let home = trial.base.join("home");
    std::fs::write(home.join(".zshrc"), "own\n").unwrap();
    for root in [home.clone(), trial.base.clone()] {
        let workspace = Workspace { root: root.clone(), ..(*trial.workspace).clone() };
        let mut runtime = trial.runtime();
        runtime.site.workspace = Arc::new(workspace);
        let command = format!(
            "cd {}; echo x > .zshrc; echo x > .bashrc; echo x > .profile; mkdir -p .config/fish; echo x > .config/fish/f; ls -A",
            home.display()
        );
        trial.tool("bash").run(json!({"command": command}), runtime).await;
        assert_eq!(names(&home), [".zshrc"], "{}", root.display());
        assert_eq!(std::fs::read_to_string(home.join(".zshrc")).unwrap(), "own\n");
    }
}

#[tokio::test]
async fn place_holders_are_shared_and_found_again_after_a_crash() {
    let trial = Trial::held(Level::Full);
    repository(&trial.root);
    // As a process that was killed leaves them.
    std::fs::create_dir(trial.root.join(".claude")).unwrap();
    std::fs::set_permissions(trial.root.join(".claude"), PermissionsExt::from_mode(0o1755)).unwrap();
    drop(UnixListener::bind(trial.root.join(".mcp.json")).unwrap());
    // Not ours: somebody has made something of them.
    std::fs::create_dir(trial.root.join(".idea")).unwrap();
    std::fs::write(trial.root.join(".idea/x"), "").unwrap();
    std::fs::set_permissions(trial.root.join(".idea"), PermissionsExt::from_mode(0o1755)).unwrap();
    std::fs::write(trial.root.join(".envrc"), "").unwrap();
    let (long, short) = tokio::join!(
        run(&trial, "until [ -e go ]; do sleep 0.01; done; echo x > .mcp.json; mkdir .zed/x; echo $?"),
        async {
            for _ in 0..3 {
                refused(&trial, "echo x > .claude/x || echo x > .mcp.json").await;
            }
            run(&trial, "touch go").await
        }
    );
    assert_eq!((long.1, short.1), (0, 0));
    assert!(long.0.contains(".mcp.json: Read-only file system"), "{}", long.0);
    assert_eq!(trial.names(), [".envrc", ".git", ".idea", "go"]);
}

#[tokio::test]
async fn git_does_not_see_place_holders() {
    let trial = Trial::held(Level::Full);
    let init =
        std::process::Command::new("git").args(["init", "-q"]).current_dir(&trial.root).status().unwrap();
    assert!(init.success());
    std::fs::write(trial.root.join("a"), "x").unwrap();
    let output = done(&trial, "git status --porcelain && git add -A && git status --porcelain").await;
    assert_eq!(output, "?? a\nA  a\n");
    let commit = "git -c user.name=a -c user.email=a@b commit -qm a";
    done(
        &trial,
        &format!("{commit} && echo y > a && echo z > b && git -c user.name=a -c user.email=a@b stash -qu"),
    )
    .await;
    assert_eq!((trial.text("a"), trial.root.join("b").exists()), ("x".to_owned(), false));
    assert_eq!(done(&trial, "git stash pop -q && cat a b").await, "y\nz\n");
    assert_eq!(done(&trial, "git clean -fd").await, "Removing b\n");
}

#[tokio::test]
async fn without_a_grant_nothing_reaches_the_network() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    tcp.set_nonblocking(true).unwrap();
    udp.set_nonblocking(true).unwrap();
    let (tcp_port, udp_port) = (tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port());
    let attempt = format!(
        "(echo {CANARY} > /dev/tcp/127.0.0.1/{tcp_port}); (echo {CANARY} > /dev/udp/127.0.0.1/{udp_port}); \
         timeout 2 getent hosts example.org; true"
    );
    for level in LEVELS {
        let trial = Trial::held(level);
        let abstract_name = format!("attache-test-{}-{level:?}", std::process::id());
        let address =
            <std::os::unix::net::SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(
                abstract_name.as_bytes(),
            );
        let hidden = UnixListener::bind_addr(&address.unwrap()).unwrap();
        hidden.set_nonblocking(true).unwrap();
        let connect = format!(
            "python3 -c 'import socket; s=socket.socket(socket.AF_UNIX); s.connect(\"\\0{abstract_name}\"); s.send(b\"{CANARY}\")'; true"
        );
        let output = done(&trial, &format!("{attempt}; {connect}")).await;
        let mut buffer = [0; 64];
        assert!(
            tcp.accept().is_err() && udp.recv(&mut buffer).is_err() && hidden.accept().is_err(),
            "{level:?}"
        );
        assert!(!output.contains("example.org"), "{output}");
        let (output, _) = run_with(&trial, &attempt, NetworkGrant::Granted).await;
        let (mut stream, _) = tcp.accept().unwrap_or_else(|error| panic!("{level:?}: {error}: {output}"));
        stream.set_nonblocking(false).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert_eq!(text, format!("{CANARY}\n"));
        assert_eq!(udp.recv(&mut buffer).unwrap(), CANARY.len() + 1);
    }
}

/// Ends with the test.
struct Outside(std::process::Child);

impl Drop for Outside {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[tokio::test]
async fn other_processes_are_out_of_reach() {
    let mut outside = Outside(std::process::Command::new("sleep").arg("60").spawn().unwrap());
    let pid = outside.0.id();
    for level in LEVELS {
        let trial = Trial::held(level);
        let (output, _) =
            run(&trial, &format!("kill -9 {pid}; cat /proc/{pid}/environ; kill -TERM $PPID")).await;
        assert!(outside.0.try_wait().unwrap().is_none(), "{level:?}: {output}");
        refused(&trial, "strace -o /dev/null true").await;
    }
}

#[tokio::test]
async fn no_right_is_left_or_can_be_had_again() {
    for level in LEVELS {
        let trial = Trial::held(level);
        let status = done(&trial, "cat /proc/self/status").await;
        let field = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().to_owned()
        };
        assert_eq!((field("NoNewPrivs:"), field("Seccomp:")), ("1".into(), "2".into()), "{level:?}");
        assert_eq!(field("CapEff:"), "0".repeat(16), "{level:?}");
        if rustix::process::getuid().is_root() {
            assert_eq!(field("CapBnd:"), "0".repeat(16), "{level:?}");
        }
        for command in ["unshare -U true", "unshare -r true", "mount -t tmpfs x .", "chroot / true", "dmesg"]
        {
            refused(&trial, command).await;
        }
        // TIOCSTI, and what a filter that only knows one numbering would let pass.
        let script = "import ctypes,fcntl\ntry:\n fcntl.ioctl(0,0x5412,b'x')\nexcept OSError as e: print(e.errno)\n\
                      c=ctypes.CDLL(None,use_errno=True)\n\
                      for n in (101,0x40000000+101,425,321,467):\n print(c.syscall(n,0,0,0,0), ctypes.get_errno())";
        std::fs::write(trial.root.join("s.py"), script).unwrap();
        if cfg!(target_arch = "x86_64") {
            assert_eq!(done(&trial, "python3 s.py").await, "1\n-1 1\n-1 38\n-1 1\n-1 1\n-1 1\n", "{level:?}");
        }
    }
}

/// With a lease on a file of git's a command would keep us from reading what its user's git waits for.
#[tokio::test]
async fn no_command_makes_others_wait_for_a_file() {
    let script = "import fcntl,sys\nf=open('leased','w')\ntry:\n fcntl.fcntl(f,1024,fcntl.F_WRLCK)\n print('held')\n\
                  except OSError as e: print(e.errno)";
    for level in LEVELS {
        let trial = Trial::held(level);
        std::fs::write(trial.root.join("s.py"), script).unwrap();
        assert_eq!(done(&trial, "python3 s.py").await, "1\n", "{level:?}");
        let bare =
            std::process::Command::new("python3").arg("s.py").current_dir(&trial.root).output().unwrap();
        assert_eq!(bare.stdout, b"held\n", "the control: {bare:?}");
    }
}

/// Every call that gives a file a mode, with both bits, on a file and a directory; prints what was not refused.
const MODES: &str = r#"
import ctypes, os, stat, sys
c = ctypes.CDLL(None, use_errno=True)
AT, CREATE, NAMELESS, count = -100, os.O_CREAT | os.O_RDWR, os.O_TMPFILE | os.O_RDWR, 0
def fresh():
    global count
    count += 1
    return ('m%d' % count).encode()
def there(make=lambda name: os.close(os.open(name, CREATE, 0o755))):
    name = fresh()
    make(name)
    return name
def call(number, *words):
    return c.syscall(number, *words), ctypes.get_errno()
class How(ctypes.Structure):
    _fields_ = [('flags', ctypes.c_ulonglong), ('mode', ctypes.c_ulonglong), ('resolve', ctypes.c_ulonglong)]
calls = {
    'chmod': lambda name, bits: (there(), lambda name: call(90, name, bits)),
    'chmod of a directory': lambda name, bits: (there(os.mkdir), lambda name: call(90, name, bits)),
    'fchmod': lambda name, bits: (there(), lambda name: call(91, os.open(name, os.O_RDWR), bits)),
    'fchmodat': lambda name, bits: (there(), lambda name: call(268, AT, name, bits)),
    'fchmodat2': lambda name, bits: (there(), lambda name: call(452, AT, name, bits, 0)),
    'creat': lambda name, bits: (name, lambda name: call(85, name, bits)),
    'open': lambda name, bits: (name, lambda name: call(2, name, CREATE, bits)),
    'openat': lambda name, bits: (name, lambda name: call(257, AT, name, CREATE, bits)),
    'open without a name': lambda name, bits: (name, lambda name: call(2, b'.', NAMELESS, bits)),
    'openat without a name': lambda name, bits: (name, lambda name: call(257, AT, b'.', NAMELESS, bits)),
    'openat2': lambda name, bits: (name, lambda name: call(437, AT, name, ctypes.byref(How(CREATE, bits, 0)), 24)),
    'mknod': lambda name, bits: (name, lambda name: call(133, name, stat.S_IFREG | bits, 0)),
    'mknodat': lambda name, bits: (name, lambda name: call(259, AT, name, stat.S_IFREG | bits, 0)),
    'mkdir': lambda name, bits: (name, lambda name: call(83, name, bits)),
    'mkdirat': lambda name, bits: (name, lambda name: call(258, AT, name, bits)),
}
for name, prepare in calls.items():
    for bits in (0o4755, 0o2755, 0o6755):
        path, act = prepare(fresh(), bits)
        result, error = act(path)
        mode = 0
        if os.path.lexists(path): mode = os.lstat(path).st_mode
        elif result >= 0 and 'without' in name: mode = os.fstat(result).st_mode
        if mode & 0o6000 & bits: print(name, oct(bits))
        elif 'mkdir' not in name and error not in (1, 38): print(name, oct(bits), 'failed with', error)
# What is no mode is not taken for one.
print(call(2, b'.', 0, 0o4755)[0] >= 0, call(257, AT, b'.', os.O_DIRECTORY, 0o6755)[0] >= 0)
"#;

#[tokio::test]
async fn no_file_that_runs_as_somebody_else_can_be_made() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    for level in LEVELS {
        let trial = Trial::held(level);
        trial.put("modes.py", MODES);
        assert_eq!(done(&trial, "python3 modes.py").await, "True True\n", "{level:?}");
        // The directory of a team: its subdirectories keep the bit when their mode is changed.
        std::fs::set_permissions(&trial.root, PermissionsExt::from_mode(0o2755)).unwrap();
        done(&trial, "mkdir team && chmod 750 team && cp -rp team copy && git init -q --shared shared").await;
        // New directories have it from the one above.
        let left = "chmod 0o2755\nchmod of a directory 0o2755\nchmod of a directory 0o6755\n\
                    fchmod 0o2755\nfchmodat 0o2755\n";
        let printed = done(&trial, "rm -r m[0-9]*; python3 modes.py").await;
        let printed =
            printed.replace("fchmodat2 0o2755\n", "").replace("fchmodat2 0o2755 failed with 38\n", "");
        let of_directories = "mkdir 0o2755\nmkdir 0o6755\nmkdirat 0o2755\nmkdirat 0o6755\n";
        assert_eq!(printed, format!("{left}{of_directories}True True\n"), "{level:?}");
    }
}

#[tokio::test]
async fn modes_without_these_bits_are_set_as_ever() {
    for level in LEVELS {
        let trial = Trial::held(level);
        let work = "mkdir -m 1777 sticky && echo x > a && chmod 751 a && cp -p a b && install -m 755 a c && \
                    tar cf t.tar a b c sticky && mkdir out && tar xpf t.tar -C out && git init -q g && \
                    stat -c '%a %n' a b c sticky out/a out/sticky";
        let modes = "751 a\n751 b\n755 c\n1777 sticky\n751 out/a\n1777 out/sticky\n";
        assert_eq!(done(&trial, work).await, modes, "{level:?}");
    }
}

/// What one process of a user may do to another, by numbers and names that both know.
#[tokio::test]
async fn processes_of_others_are_neither_steered_nor_shared_with() {
    let mut outside = Outside(std::process::Command::new("sleep").arg("60").spawn().unwrap());
    let script = format!(
        "import ctypes, os, resource\npid = {}\nc = ctypes.CDLL(None, use_errno=True)\n\
         def refused(name, act):\n try: act()\n except PermissionError: return\n except ProcessLookupError: return\n \
         print(name)\n\
         def call(*words):\n if c.syscall(*words) < 0: raise OSError(ctypes.get_errno(), 'refused')\n\
         param = ctypes.byref((ctypes.c_int * 12)(48))\n\
         refused('prlimit', lambda: resource.prlimit(pid, resource.RLIMIT_CPU, (999, 999)))\n\
         refused('setpriority', lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))\n\
         refused('setpriority of the group', lambda: os.setpriority(os.PRIO_PGRP, pid, 19))\n\
         refused('ioprio_set', lambda: call(251, 1, pid, 0x6007))\n\
         refused('affinity', lambda: os.sched_setaffinity(pid, {{0}}))\n\
         refused('scheduler', lambda: os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0)))\n\
         refused('param', lambda: os.sched_setparam(pid, os.sched_param(0)))\n\
         refused('attr', lambda: call(314, pid, param, 0))\n\
         resource.setrlimit(resource.RLIMIT_CPU, (999, 999)); os.nice(1)\n\
         os.sched_setaffinity(0, os.sched_getaffinity(0))\n",
        outside.0.id()
    );
    let reduced = "refused('setpriority of the user', lambda: os.setpriority(os.PRIO_USER, 0, 19))\n\
                   refused('ioprio of the user', lambda: call(251, 3, 0, 0x6007))\n\
                   for number in (29, 30, 31, 64, 65, 66, 68, 69, 70, 71, 220, 240, 241):\n \
                   refused(number, lambda: call(number, 0, 0, 0, 0))\n";
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    for (level, more) in [(Level::Full, ""), (Level::Reduced, reduced)] {
        let trial = Trial::held(level);
        trial.put("steer.py", format!("{script}{more}"));
        assert_eq!(done(&trial, "python3 steer.py").await, "", "{level:?}");
    }
    assert!(outside.0.try_wait().unwrap().is_none());
}

/// Opened and not written: a test must not change the machine even where nothing holds it.
#[tokio::test]
async fn settings_of_the_kernel_can_not_be_opened_for_writing() {
    let trial = Trial::held(Level::Full);
    for setting in ["kernel/core_pattern", "vm/swappiness", "kernel/hostname", "net/ipv4/ip_forward"] {
        refused(&trial, &format!(": >> /proc/sys/{setting}")).await;
    }
    refused(&trial, ": >> /proc/sysrq-trigger").await;
}

/// Whoever can write the memory of the first process does what that one may do.
#[tokio::test]
async fn the_first_process_is_closed_to_the_command_and_under_the_same_filter() {
    let trial = Trial::held(Level::Full);
    for look in ["head -c1 /proc/1/mem", ": >> /proc/1/mem", "readlink /proc/1/fd/0", "cat /proc/1/environ"] {
        refused(&trial, look).await;
    }
    let printed = done(&trial, "grep -h ^Seccomp: /proc/1/status /proc/self/status").await;
    assert_eq!(printed.matches("Seccomp:\t2").count(), 2, "{printed}");
}

/// What people have in the environment of their editor and no command may get. The last ones would be run by a
/// shell.
const SECRETS: [&str; 40] = [
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "MISTRAL_API_KEY",
    "OPENROUTER_API_KEY",
    "XAI_API_KEY",
    "DEEPSEEK_API_KEY",
    "GROQ_API_KEY",
    "BRAVE_API_KEY",
    "TAVILY_API_KEY",
    "EXA_API_KEY",
    "ATTACHE_TOKEN",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_CLIENT_SECRET",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "DIGITALOCEAN_TOKEN",
    "CLOUDFLARE_API_TOKEN",
    "KUBECONFIG",
    "VAULT_TOKEN",
    "DATABASE_URL",
    "GITHUB_TOKEN",
    "GH_TOKEN",
    "GITLAB_TOKEN",
    "CI_JOB_TOKEN",
    "BITBUCKET_TOKEN",
    "NPM_TOKEN",
    "NODE_AUTH_TOKEN",
    "CARGO_REGISTRY_TOKEN",
    "CARGO_REGISTRIES_OWN_TOKEN",
    "TWINE_PASSWORD",
    "HF_TOKEN",
    "SSH_AUTH_SOCK",
    "GPG_AGENT_INFO",
    "GIT_ASKPASS",
    "BASH_ENV",
    "ENV",
    "PROMPT_COMMAND",
];

#[tokio::test]
async fn only_three_descriptors_and_a_clean_environment_come_in() {
    let proxy = format!("http://user:{CANARY}@localhost:1");
    let function = format!("() {{ echo {CANARY}; }}");
    let others = [("https_proxy", proxy.as_str()), ("BASH_FUNC_env%%", function.as_str())];
    let environment: Vec<_> = SECRETS.iter().map(|name| (*name, CANARY)).chain(others).collect();
    if alone("sandbox::only_three_descriptors_and_a_clean_environment_come_in", &environment) == Alone::Done {
        return;
    }
    assert_eq!(std::env::var("ATTACHE_TOKEN").unwrap(), CANARY);
    let file = std::fs::File::open("/etc/passwd").unwrap();
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    for level in [Level::Full, Level::Reduced, Level::None] {
        let trial = Trial::held(level);
        let descriptors = "ls /proc/$$/fd; (ls /proc/$BASHPID/fd; true) & wait";
        assert_eq!(done(&trial, descriptors).await, "0\n1\n2\n".repeat(2), "{level:?}");
        let environment =
            done(&trial, "env; cat /proc/self/environ; cat; tty; (: < /dev/tty) 2>&1; true").await;
        let names = environment.split(['\n', '\0']).filter_map(|variable| variable.split_once('='));
        let secret: Vec<_> = names.filter(|(name, _)| SECRETS.contains(name)).collect();
        assert_eq!(secret, Vec::<(&str, &str)>::new(), "{level:?}");
        assert!(
            !environment.contains(CANARY) && !environment.contains("ATTACHE"),
            "{level:?}: {environment}"
        );
        assert!(environment.contains("not a tty") && environment.contains("PATH="), "{environment}");
        assert_eq!(environment.contains("GOCACHE="), level != Level::None, "{environment}");
    }
}

#[tokio::test]
async fn a_fork_bomb_is_ended() {
    let trial = Trial::held(Level::Full);
    let text = trial.failed("bash", json!({"command": "f() { f | f & }; f; sleep 600"})).await;
    let ended = text.strip_prefix("bash: it had more than 512 processes and was ended; ").expect(&text);
    // Between two counts an ordinary user may reach the kernel's own limit; then bash complains of it, and of
    // nothing else.
    let is_complaint = |line: &str| line.contains("fork") || line.contains(" left out") || line.is_empty();
    let printed =
        ended.strip_prefix("output until then:\n").is_none_or(|output| output.lines().all(is_complaint));
    assert!(ended == "there was no output" || printed, "{text}");
    assert_eq!(done(&trial, "echo next").await, "next\n");
}

#[tokio::test]
async fn a_root_that_is_hidden_is_a_failure_to_start() {
    for level in LEVELS {
        let trial = Trial::held(level);
        let workspace = Workspace { root: trial.base.join("own"), ..(*trial.workspace).clone() };
        let mut runtime = trial.runtime();
        runtime.site.workspace = Arc::new(workspace);
        let ToolOutcome::Error { text, .. } = trial.tool("bash").run(json!({"command": "ls"}), runtime).await
        else {
            panic!("a hidden root")
        };
        assert!(text.contains("could not be started") && text.contains("not shown to agents"), "{text}");
    }
}

/// Set where root runs these tests once more with the rights of an ordinary user.
pub(crate) const ORDINARY: &str = "ATTACHE_TEST_ORDINARY";

/// Everything here once more without the rights of root: what the kernel allows differs.
#[test]
fn everything_holds_for_an_ordinary_user_too() {
    if std::env::var_os(ORDINARY).is_some() || !rustix::process::getuid().is_root() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let copy = |from: &Path| -> PathBuf {
        let to = home.path().join(from.file_name().unwrap());
        std::fs::copy(from, &to).unwrap();
        to
    };
    let program = copy(&std::env::current_exe().unwrap());
    let run = |words: &[&str]| {
        let ended = std::process::Command::new("setpriv")
            .args([
                "--reuid=65534",
                "--regid=65534",
                "--clear-groups",
                "--inh-caps=-all",
                "--bounding-set=-all",
            ])
            .arg(&program)
            .args(words)
            .env(ORDINARY, "1")
            .env("HOME", home.path())
            .env("TMPDIR", home.path())
            .current_dir(home.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&ended.stdout);
        assert!(ended.status.success(), "{text}\n{}", String::from_utf8_lossy(&ended.stderr));
        assert!(text.contains("test result: ok") && !text.contains(" 0 passed"), "{text}");
    };
    // What makes hundreds of processes has the machine for itself: others hold dead-lines.
    let skipped = ["--skip", "cargo_builds_in_a_home", "--skip", BOMB];
    run(&[&["sandbox::", "mounts::", "traced::the_tracer", "--test-threads=2"], &skipped[..]].concat());
    run(&["trees::", BOMB, "--test-threads=1"]);
}

/// The name of the test with the most processes.
const BOMB: &str = "a_fork_bomb_is_ended";

/// As the loop hands it over: what the command was let write, and the grant for it.
async fn told_of_writing(trial: &Trial, path: &str) -> String {
    let mut runtime = trial.runtime();
    runtime.site.writes = [PathBuf::from(path)].into();
    runtime.site.granted = [PathBuf::from(path)].into();
    match trial.tool("bash").run(json!({"command": format!("echo x > {path}")}), runtime).await {
        ToolOutcome::Output { data, .. } => data.as_str().unwrap().to_owned(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_granted_write_that_does_not_stay_or_fails_is_told_of() {
    for level in LEVELS {
        let trial = Trial::held(level);
        let missing = format!("/tmp/attache-zz-{}", std::process::id());
        let text = told_of_writing(&trial, &missing).await;
        match level {
            Level::Full => {
                assert!(text.contains(&format!("[{missing}: commands have a /tmp of their own")), "{text}")
            }
            Level::Reduced | Level::None => {
                assert!(text.contains(&format!("[{missing}: commands can't create")), "{text}")
            }
        }
        assert!(!Path::new(&missing).exists());
        let text = told_of_writing(&trial, "/etc/attache-zz").await;
        assert!(
            text.contains("[/etc/attache-zz: commands can't create files there, even if allowed"),
            "{level:?} {text}"
        );
        // What exists is opened, and nothing is said.
        std::fs::write(&missing, "").unwrap();
        let text = told_of_writing(&trial, &missing).await;
        let written = std::fs::read_to_string(&missing);
        std::fs::remove_file(&missing).unwrap();
        assert_eq!((text.as_str(), written.unwrap().as_str()), ("(no output)\n[exit 0]", "x\n"), "{level:?}");
        let inside = trial.root.join("new").display().to_string();
        assert_eq!(told_of_writing(&trial, &inside).await, "(no output)\n[exit 0]");
    }
}

/// It has no more rights than the command, and the command can't take it over.
#[tokio::test]
async fn the_first_process_is_closed_to_commands() {
    let trial = Trial::held(Level::Full);
    let (output, _) = run(
        &trial,
        "grep Seccomp: /proc/1/status; head -c1 /proc/1/mem && echo read; : > /proc/1/mem && echo written; \
         readlink /proc/1/fd/0 && echo found; cat /proc/1/environ && echo told; true",
    )
    .await;
    assert!(output.contains("Seccomp:\t2"), "{output}");
    for got in ["read\n", "written", "found", "told"] {
        assert!(!output.contains(got), "{output}");
    }
}

#[tokio::test]
async fn a_root_that_a_command_closes_is_open_to_the_next() {
    for mode in ["000", "311", "400"] {
        let trial = Trial::held(Level::Full);
        run(&trial, &format!("mkdir s; chmod {mode} s .")).await;
        done(&trial, "touch made s/made").await;
        assert!(trial.root.join("made").exists() && trial.root.join("s/made").exists(), "{mode}");
    }
}

#[tokio::test]
async fn who_meets_a_tmp_of_its_own_is_told() {
    for level in [Level::Full, Level::None] {
        let trial = Trial::held(Level::Full).hold(level);
        let place = tempfile::tempdir_in("/tmp").unwrap();
        let script = place.path().join("x.sh");
        let input = json!({"path": script, "content": "echo ran"});
        let mut runtime = trial.runtime();
        runtime.site.granted = Arc::new([place.path().to_owned()]);
        let ToolOutcome::Output { data, .. } = trial.tool("write").run(input, runtime).await else {
            panic!("not written")
        };
        let command = json!({"command": format!("bash {}", script.display())});
        let (ran, _) = trial.done("bash", command).await;
        let (written, ran) = (data.as_str().unwrap(), ran.as_str().unwrap());
        let told = [written, ran].map(|text| text.contains("$TMPDIR"));
        assert_eq!(told, [level == Level::Full; 2], "{level:?}: {written}\n{ran}");
    }
}

#[tokio::test]
async fn what_would_leave_half_a_directory_behind_is_not_run() {
    for level in [Level::Full, Level::None] {
        let trial = Trial::held(Level::Full).hold(level);
        repository(&trial.root);
        repository(&trial.root.join("packages/clone"));
        repository(&trial.workspace.scratch.join("clone"));
        trial.put("packages/a/.vscode/tasks.json", "{}");
        trial.put("src/main.rs", "");
        for command in [
            "rm -rf .git",
            "cd src && rm -r ../.git",
            "make; rm -rf packages",
            "rm -rf src packages/clone",
            "mv packages/a $TMPDIR",
        ] {
            let planned = trial.plan("bash", json!({ "command": command })).await;
            match level {
                Level::Full => {
                    let problem = planned.unwrap_err();
                    assert!(
                        problem.starts_with("bash: not run: ") && problem.contains("protected"),
                        "{problem}"
                    );
                }
                Level::Reduced | Level::None => assert!(planned.is_ok(), "{command}: {planned:?}"),
            }
        }
        for command in
            ["rm -rf src", "mv src lib", "rm -rf $TMPDIR/clone", "rm -f .git/index", "rm -rf missing"]
        {
            let planned = trial.plan("bash", json!({ "command": command })).await;
            assert!(planned.is_ok(), "{command}: {planned:?}");
        }
    }
}
