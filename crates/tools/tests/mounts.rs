//! What a command leaves behind for the next one's mounts: links, swaps, strange entries. Through real
//! bubblewrap.

mod random;

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use attache_core::ports::ToolOutcome;
use attache_core::ports::tool::{Workspace, WriteGrant};
use attache_sandbox::Level;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;

use crate::trial::{Trial, names};

const CANARY: &str = "canary-91c2";

/// Everything that the model is told of a command, which has to begin whatever it finds.
pub(crate) async fn told(trial: &Trial, command: &str) -> String {
    told_with(trial, command, trial.runtime()).await
}

async fn told_with(trial: &Trial, command: &str, runtime: attache_core::ports::ToolRuntime) -> String {
    match trial.tool("bash").run(json!({"command": command}), runtime).await {
        ToolOutcome::Output { data, .. } => match data.get("output").and_then(|output| output.as_str()) {
            Some(output) => format!("{output}[exit {}]", data["exit_code"]),
            None => data.as_str().unwrap().to_owned(),
        },
        ToolOutcome::Error { text, .. } => {
            assert!(!text.contains("could not be started"), "{command}: {text}");
            text
        }
        picture @ ToolOutcome::Picture { .. } => panic!("{command}: {picture:?}"),
    }
}

async fn runs(trial: &Trial) {
    let told = told(trial, "echo runs").await;
    assert!(told.contains("runs"), "{told}");
}

/// A home beside the root with a file of the user's and one that is hidden.
fn with_home() -> (Trial, PathBuf) {
    let trial = Trial::held(Level::Full);
    let home = fill_home(&trial);
    (trial, home)
}

fn fill_home(trial: &Trial) -> PathBuf {
    let home = trial.base.join("home");
    std::fs::create_dir_all(home.join(".ssh")).unwrap();
    std::fs::write(home.join(".ssh/id_ed25519"), CANARY).unwrap();
    std::fs::write(home.join("own"), "outside").unwrap();
    home
}

/// Two commands in a row: the first plants, the second would write through it or see what is hidden.
#[tokio::test]
async fn no_link_that_a_command_plants_leads_a_mount_away() {
    let plants = [
        "mkdir -p .git && ln -s @HOME .git/modules",
        "ln -s @HOME .git/worktrees",
        "mkdir -p .git/modules && ln -s @HOME .git/modules/a",
        "mkdir -p .git/modules/b && touch .git/modules/b/HEAD && ln -s @HOME .git/modules/b/hooks",
        "mkdir -p sub && ln -s @HOME sub/.vscode",
        "mkdir -p sub2/.git && ln -s @HOME/own sub2/.git/config && ln -s @HOME sub2/.git/hooks",
        "mkdir -p sub3 && ln -s @HOME sub3/.git",
        "mkdir -p sub4 && ln -s /run sub4/.claude && ln -s /proc sub4/.cursor && ln -s / sub4/.idea",
        "mkdir -p sub5 && ln -s . sub5/.zed && ln -s .codex sub5/.codex && ln -s ../../.. sub5/.agents",
        "mkdir -p sub6/.config && ln -s @HOME sub6/.config/fish",
    ];
    let (trial, home) = with_home();
    std::fs::create_dir_all(trial.root.join(".git/objects")).unwrap();
    std::fs::write(trial.root.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    std::fs::write(trial.root.join(".git/config"), "").unwrap();
    for plant in plants {
        told(&trial, &plant.replace("@HOME", home.to_str().unwrap())).await;
        let told = told(
            &trial,
            &format!(
                "cat {0}/.ssh/*; echo x > {0}/own; echo x > {0}/new; find . -maxdepth 4 -name 'id_*' -exec cat {{}} +; \
                 ls /run; echo done",
                home.display()
            ),
        )
        .await;
        assert!(told.contains("done") && !told.contains(CANARY), "{plant}: {told}");
        assert_eq!(names(&home), [".ssh", "own"], "{plant}");
        assert_eq!(std::fs::read_to_string(home.join("own")).unwrap(), "outside", "{plant}");
    }
}

/// The user's own links at protected names: they can be replaced while a command runs, not for longer.
#[tokio::test]
async fn a_protected_link_is_put_back() {
    let (trial, _) = with_home();
    std::fs::create_dir(trial.root.join("shared")).unwrap();
    symlink("shared", trial.root.join(".vscode")).unwrap();
    let told_of = told(&trial, "rm .vscode && mkdir .vscode && echo evil > .vscode/tasks.json").await;
    assert!(told_of.contains(".vscode is protected: the link is back"), "{told_of}");
    assert_eq!(std::fs::read_link(trial.root.join(".vscode")).unwrap(), Path::new("shared"));
    assert_eq!(trial.text(".vscode.undone-1/tasks.json"), "evil\n");
    assert!(!told(&trial, "true").await.contains("protected"));
}

/// A root below another root, or below that of another session, by way of a link that was put in its place.
#[tokio::test]
async fn a_root_is_no_root_any_more_where_a_link_has_taken_its_place() {
    let (mut trial, home) = with_home();
    let inner = trial.root.join("packages/inner");
    std::fs::create_dir_all(&inner).unwrap();
    trial.workspace = Arc::new(Workspace { additional: vec![inner], ..(*trial.workspace).clone() });
    runs(&trial).await;
    // Within a sandbox the way there can't be moved.
    let told_of = told(&trial, "mv packages p; mv packages/inner i").await;
    assert!(told_of.contains("busy"), "{told_of}");
    std::fs::rename(trial.root.join("packages"), trial.root.join("p")).unwrap();
    std::fs::create_dir(trial.root.join("packages")).unwrap();
    symlink(&home, trial.root.join("packages/inner")).unwrap();
    let told_of = told(&trial, "echo x > packages/inner/new; echo x > in-root").await;
    assert_eq!(names(&home), [".ssh", "own"], "{told_of}");
    assert!(trial.root.join("in-root").exists(), "{told_of}");
    // The main root itself.
    std::fs::rename(&trial.root, trial.base.join("moved")).unwrap();
    symlink(&home, &trial.root).unwrap();
    let input = json!({"command": "echo x > new"});
    let ToolOutcome::Error { text, .. } = trial.run("bash", input).await else { panic!("it ran") };
    assert!(text.contains("when the session first used it"), "{text}");
    assert_eq!(names(&home), [".ssh", "own"]);
}

/// A home that is a root: what is hidden in it can't be brought to light by moving what lies above.
#[tokio::test]
async fn what_is_hidden_stays_hidden_for_the_next_command() {
    let (mut trial, home) = with_home();
    std::fs::create_dir_all(home.join(".local/share/keyrings")).unwrap();
    std::fs::write(home.join(".local/share/keyrings/login"), CANARY).unwrap();
    trial.workspace = Arc::new(Workspace { root: home.clone(), ..(*trial.workspace).clone() });
    for command in [
        "mv .local l; mv .local/share s; mv .ssh t",
        "cat */share/keyrings/* .local/share/keyrings/* s/keyrings/* t/* .ssh/*",
        // To hide what others need is no way to keep the next command from running either.
        "ln -s / .aws; ln -s /usr .kube; ln -s . .gnupg; ln -s .docker .docker; ln -s $PWD .netrc",
        "cat .local/share/keyrings/* .ssh/*; echo runs",
    ] {
        let told = told(&trial, command).await;
        assert!(!told.contains(CANARY), "{command}: {told}");
    }
    runs(&trial).await;
}

/// Self-denial: whatever a command leaves, the next one begins.
#[tokio::test]
async fn nothing_that_a_command_leaves_keeps_the_next_one_from_running() {
    let leaves = [
        "mkfifo .envrc; mkdir -p s && cd s && mkfifo .mcp.json .vscode .git",
        "mkdir -p a/.git && cd a && mkfifo .git/config .git/HEAD; ln -s x .git/hooks",
        "mkdir -p b/.vscode b/.git/modules && chmod 000 b/.vscode b/.git/modules",
        "mkdir -p c/.git && chmod 000 c/.git && chmod 000 c",
        "mkdir -p d && echo file > d/.git && echo file > d/.vscode && echo f > d/.config",
        "mkdir -p e && for i in $(seq 200); do mkdir -p e/$i/.git e/$i/.vscode; done",
        "mkdir -p f/.git/modules && for i in $(seq 300); do mkdir -p f/.git/modules/$i; touch f/.git/modules/$i/HEAD; done",
        "mkdir -p \"g\n x\t\\\\ [!]/.vscode\" && mkdir -p 'g 2/.git/hooks'",
        "mkdir -p $'h\\xff/.vscode' $'h\\xfe/.git'",
        "d=deep; for i in 1 2 3 4 5 6 7 8 9; do d=$d/$(printf 'x%.0s' $(seq 250)); done; mkdir -p $d/.git",
        "x=$(printf 'y%.0s' $(seq 255)); mkdir -p $x/$x/$x/.vscode/$x",
        "mkdir -p i && ln -s i/../i i/.cursor; ln -s .zed i/.zed; ln -s /proc/self/fd i/.idea",
        "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('sock')\"; mkdir -p j && mv sock j/.claude",
        "mkdir -p .config; chmod 000 .config; touch .cargo-x; chmod 1777 .",
        "chmod 500 .",
        "chmod 000 .",
    ];
    for leave in leaves {
        let (trial, home) = with_home();
        std::fs::create_dir_all(trial.root.join(".git")).unwrap();
        told(&trial, leave).await;
        for _ in 0..2 {
            runs(&trial).await;
        }
        let mut runtime = trial.runtime();
        runtime.writes = WriteGrant::Withheld;
        let told_of = told_with(&trial, "echo runs", runtime).await;
        assert!(told_of.contains("runs"), "{leave}: {told_of}");
        assert_eq!(names(&home), [".ssh", "own"], "{leave}");
        set_free(&trial.root);
    }
}

/// As root and as an ordinary user: what closes a directory to its owner is taken back.
#[tokio::test]
async fn a_root_that_a_command_has_closed_is_open_for_the_next_one() {
    for mode in ["000", "311"] {
        let (trial, _) = with_home();
        let told_of = told(&trial, &format!("chmod {mode} .")).await;
        let told_then = told(&trial, "touch made && ls").await;
        assert!(trial.root.join("made").exists(), "{mode}: {told_of}{told_then}");
        set_free(&trial.root);
    }
}

/// So that the trial can be removed by an ordinary user, too.
fn set_free(path: &Path) {
    if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
        path.read_dir().unwrap().for_each(|entry| set_free(&entry.unwrap().path()));
    }
}

/// Somebody swaps entries while sandboxes are built: between our look and the mounts, and between two mounts.
#[test]
fn what_is_swapped_meanwhile_leads_nowhere() {
    let (trial, home) = with_home();
    let wrong = harm_of_swaps(&trial, &home, Rounds::All(40));
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(names(&home), [".ssh", "own"]);
}

/// The control: where nothing looks at the mounts before the command begins, the same swaps lead them away.
#[test]
fn without_a_look_at_the_mounts_a_swap_leads_them_away() {
    const MOST: usize = 2_000;
    let place = tempfile::tempdir().unwrap();
    let blind = place.path().join("bwrap");
    let found =
        attache_sandbox::programs::Programs::of_machine().helper("bwrap").expect("bubblewrap is installed");
    let script = format!(
        "#!/bin/bash\nwords=()\nwhile (($#)); do\n  if [ \"$1\" = --mounted ]; then shift 3; else words+=(\"$1\"); shift; fi\ndone\n\
         exec {} \"${{words[@]}}\"\n",
        found.display()
    );
    std::fs::write(&blind, script).unwrap();
    std::fs::set_permissions(&blind, PermissionsExt::from_mode(0o755)).unwrap();
    let trial = Trial::held_by(blind);
    let home = fill_home(&trial);
    let wrong = harm_of_swaps(&trial, &home, Rounds::UntilHarm(MOST));
    assert!(!wrong.is_empty(), "no race was won in {MOST} rounds: the swaps show nothing");
}

/// How often a command is run while others swap.
#[derive(Clone, Copy)]
enum Rounds {
    /// Each has to begin.
    All(usize),
    /// At most so often. What can't be built does not begin: nothing else would notice.
    UntilHarm(usize),
}

/// What went wrong while two directories were exchanged for links that lead to the home from just there.
fn harm_of_swaps(trial: &Trial, home: &Path, rounds: Rounds) -> Vec<String> {
    let nested = trial.root.join("sub/.git/modules/m");
    std::fs::create_dir_all(nested.join("hooks")).unwrap();
    std::fs::write(nested.join("HEAD"), "").unwrap();
    std::fs::create_dir_all(trial.root.join("sub/.vscode")).unwrap();
    // Not absolute: bubblewrap looks for those where the machine's root is not.
    symlink("../../../home", trial.root.join("link")).unwrap();
    symlink("../../home/.ssh", trial.root.join("secret")).unwrap();
    let stop = AtomicBool::new(false);
    let mut wrong = Vec::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    std::thread::scope(|scope| {
        for (held, link) in [("sub/.git/modules", "link"), ("sub/.vscode", "secret")] {
            let (held, link) = (trial.root.join(held), trial.root.join(link));
            let stop = &stop;
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    // The place may be held by a sandbox just now.
                    if renameat_with(CWD, &held, CWD, &link, RenameFlags::EXCHANGE).is_err() {
                        std::thread::yield_now();
                    }
                }
            });
        }
        let command = format!(
            "cat sub/.vscode/id_* secret/id_* {0}/.ssh/id_*; echo x > sub/.git/modules/new; echo x > {0}/new; echo done",
            home.display()
        );
        let (Rounds::All(most) | Rounds::UntilHarm(most)) = rounds;
        for _ in 0..most {
            let outcome = runtime.block_on(trial.run("bash", json!({"command": command})));
            // Judged when the others have stopped: a panic here would wait for them for ever.
            let told = format!("{outcome:?}");
            let is_changed = names(home) != [".ssh", "own"];
            let has_to_begin = matches!(rounds, Rounds::All(_));
            if told.contains(CANARY) || is_changed || has_to_begin && !told.contains("done") {
                wrong.push(format!("{told} {:?}", names(home)));
            }
            if !has_to_begin && !wrong.is_empty() {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    wrong
}

/// A command that nobody was asked about sees, where links are exchanged meanwhile, what the machine shows
/// everybody; what is hidden stays hidden under every name.
#[test]
fn links_that_are_exchanged_under_an_unasked_command_show_nothing_hidden() {
    // Whoever is not the builder may not write beside the build.
    if std::env::var_os(crate::sandbox::ORDINARY).is_some() {
        return;
    }
    for level in [Level::Full, Level::Reduced] {
        // Not below /tmp, which is private to a sandbox: nothing outside of the root would be seen there.
        let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        std::fs::create_dir(place.path().join("root")).unwrap();
        let trial = Trial::beneath(place.path().canonicalize().unwrap()).hold(level);
        fill_home(&trial);
        for inner in ["place", "secret"] {
            std::fs::create_dir(trial.root.join(inner)).unwrap();
        }
        std::fs::write(trial.root.join("place/own"), "inside").unwrap();
        symlink("../home", trial.root.join("link")).unwrap();
        symlink("../home/.ssh", trial.root.join("key")).unwrap();
        let stop = AtomicBool::new(false);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let told = std::thread::scope(|scope| {
            for (directory, link) in [("place", "link"), ("secret", "key")] {
                let (directory, link) = (trial.root.join(directory), trial.root.join(link));
                let stop = &stop;
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        if renameat_with(CWD, &directory, CWD, &link, RenameFlags::EXCHANGE).is_err() {
                            std::thread::yield_now();
                        }
                    }
                });
            }
            let look = "for i in $(seq 400); do cat place/own place/.ssh/id_ed25519 secret/id_ed25519; echo; done 2> /dev/null | sort | uniq -c";
            let unasked =
                attache_core::ports::ToolRuntime { writes: WriteGrant::Withheld, ..trial.runtime() };
            let told = runtime.block_on(trial.tool("bash").run(json!({"command": look}), unasked));
            stop.store(true, Ordering::Relaxed);
            format!("{told:?}")
        });
        assert!(told.contains("inside") && told.contains("outside"), "{level:?}: no race took place: {told}");
        assert!(!told.contains(CANARY), "{level:?}: {told}");
    }
}

/// A directory on the way to something hidden that a command has closed, and that its owner can open again. To
/// root nothing is closed; its commands are not started then.
#[tokio::test]
async fn what_lies_in_a_closed_directory_stays_hidden() {
    if rustix::process::getuid().is_root() {
        return;
    }
    let (mut trial, home) = with_home();
    std::fs::create_dir_all(home.join(".local/share/keyrings")).unwrap();
    std::fs::write(home.join(".local/share/keyrings/login"), CANARY).unwrap();
    // More directories than are looked through for protected names.
    (0..200).for_each(|number| std::fs::create_dir(home.join(format!(".a{number}"))).unwrap());
    trial.workspace = Arc::new(Workspace { root: home.clone(), ..(*trial.workspace).clone() });
    for closed in [".local/share", ".local"] {
        std::fs::set_permissions(home.join(closed), PermissionsExt::from_mode(0o000)).unwrap();
        let look = "chmod 755 .local; chmod 755 .local/share; cat .local/share/keyrings/login; echo done";
        let told = told(&trial, look).await;
        assert!(told.contains("done") && !told.contains(CANARY), "{closed}: {told}");
        std::fs::set_permissions(home.join(closed), PermissionsExt::from_mode(0o755)).unwrap();
    }
    set_free(&home);
}

#[tokio::test]
async fn a_granted_read_reaches_the_command() {
    let trial = Trial::held(Level::Full);
    let place = tempfile::tempdir_in("/tmp").unwrap();
    let (shown, other) = (place.path().join("shown"), place.path().join("other"));
    std::fs::create_dir(&shown).unwrap();
    std::fs::write(shown.join("a"), "granted").unwrap();
    std::fs::write(&other, CANARY).unwrap();
    let listening = place.path().join("listening");
    std::fs::create_dir(&listening).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(listening.join("s")).unwrap();
    for writes in [WriteGrant::Withheld, WriteGrant::Granted] {
        let mut runtime = trial.runtime();
        runtime.writes = writes;
        runtime.site.judged = Some([shown.clone(), listening.clone(), "/tmp".into(), "/run".into()].into());
        let command = format!(
            "cat {0}/a; echo x > {0}/b; cat {1}; ls {2} /run /tmp",
            shown.display(),
            other.display(),
            listening.display()
        );
        let told = told_with(&trial, &command, runtime).await;
        assert!(told.contains("granted") && !told.contains(CANARY), "{writes:?}: {told}");
        assert!(!told.contains("\ns\n"), "nobody is to be connected to: {told}");
        assert_eq!(names(&shown), ["a"], "{writes:?}");
    }
}

#[tokio::test]
async fn the_whole_machine_as_a_root_can_be_read() {
    let mut trial = Trial::held(Level::Full);
    trial.workspace = Arc::new(Workspace { root: "/".into(), ..(*trial.workspace).clone() });
    let told = told(&trial, "pwd; ls usr > /dev/null && touch /attache-test; ls /run; echo $TMPDIR").await;
    assert!(told.starts_with("/\n") && told.contains("Read-only file system"), "{told}");
    assert!(told.contains("/ is read-only here: commands have a"), "{told}");
    assert!(!Path::new("/attache-test").exists());
}

#[tokio::test]
async fn a_directory_that_takes_no_place_holder_is_read_only() {
    let mut trial = Trial::held(Level::Full);
    let closed = trial.root.join("closed");
    let additional = trial.base.join("additional");
    for directory in [&closed, &additional] {
        std::fs::create_dir_all(directory.join(".git")).unwrap();
        std::fs::write(directory.join(".git/HEAD"), "").unwrap();
        std::fs::set_permissions(directory.join(".git"), PermissionsExt::from_mode(0o555)).unwrap();
        std::fs::set_permissions(directory, PermissionsExt::from_mode(0o555)).unwrap();
    }
    trial.workspace =
        Arc::new(Workspace { additional: vec![additional.clone()], ..(*trial.workspace).clone() });
    let told = told(
        &trial,
        &format!("cd {0} && chmod 755 . .git; mkdir -p .vscode .git/hooks; touch {0}/x; echo in > {1}/a; cat .git/HEAD",
            additional.display(), trial.root.display()),
    )
    .await;
    assert_eq!(trial.text("a"), "in\n", "{told}");
    if !rustix::process::getuid().is_root() {
        assert!(told.contains("is read-only here: attache could not protect"), "{told}");
        assert_eq!(names(&additional), [".git"], "{told}");
    }
    [closed, additional].iter().for_each(|path| set_free(path));
}

#[tokio::test]
async fn a_command_that_takes_too_much_memory_is_ended() {
    let mut trial = Trial::held(Level::Full);
    let sandbox = (**trial.sandbox).clone().with_memory(256 * 1024 * 1024);
    trial.sandbox = attache_sandbox::Sandbox::found_lazily_by(move || sandbox);
    trial.tools = attache_tools::builtin(attache_tools::Equipment {
        sandbox: Arc::clone(&trial.sandbox),
        ..attache_tools::Equipment::bare()
    });
    let eat = "python3 -c 'x=bytearray(120_000_000); import time; time.sleep(20)'";
    let in_parts = format!("{eat} & {eat} & {eat} & wait");
    let mapped = "python3 -c 'import mmap,time\nm=mmap.mmap(-1,320<<20)\nfor i in range(0,320<<20,4096): m[i]=1\ntime.sleep(20)'";
    let nameless = "python3 -c 'import os,time\nf=os.memfd_create(\"x\")\nfor i in range(320): os.write(f,bytes(1<<20))\ntime.sleep(20)'";
    let object = "python3 -c 'import ctypes,time\nc=ctypes.CDLL(None)\nc.shmat.restype=ctypes.c_void_p\n\
                  a=c.shmat(c.shmget(0,320<<20,0o1600),None,0)\nctypes.memset(a,1,320<<20)\n\
                  c.shmdt(ctypes.c_void_p(a))\ntime.sleep(20)'";
    let closed = "python3 -c 'import ctypes,mmap,time\nctypes.CDLL(None).prctl(4,0)\nm=mmap.mmap(-1,320<<20)\n\
                  for i in range(0,320<<20,4096): m[i]=1\ntime.sleep(20)'";
    let in_file = "head -c 300M /dev/zero > /tmp/big; sleep 20";
    let entries = "python3 -c 'for i in range(300_000): open(f\"/tmp/{i}\", \"x\").close()'; sleep 20";
    for command in [in_parts.as_str(), in_file, entries, mapped, nameless, object, closed] {
        let told = told(&trial, command).await;
        assert!(told.contains("used more memory than a command may have"), "{command}: {told}");
    }
    runs(&trial).await;
    let preferred = told_of_shortage(&trial).await;
    assert!(preferred.contains("500"), "{preferred}");
}

/// How much the kernel prefers a command in a shortage of memory, once it has asked for less.
async fn told_of_shortage(trial: &Trial) -> String {
    told(trial, "echo 0 > /proc/self/oom_score_adj; sleep 1; cat /proc/self/oom_score_adj").await
}
