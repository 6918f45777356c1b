//! Every attack of the robustness list: against the watchdog without a sandbox, against the sandbox without a
//! watchdog (unasked, so that nothing may be written, and allowed), and against both under `all`. A run with
//! neither shows that the attack is one.

mod layers;
mod races;
mod table;
mod world;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use world::CANARY;

const PLACE: &str = "ATTACHE_TEST_PLACE";
const SHARE: &str = "ATTACHE_TEST_SHARE";
const ORDINARY: &str = "ATTACHE_TEST_ORDINARY";

/// Processes that share the attacks of a row: most of the time of a sandbox is waiting.
const SHARES: usize = 3;

/// Beside the build, not in a directory for temporary files: those are private to a sandbox, and nothing would
/// be held there.
fn places() -> PathBuf {
    std::env::var_os(PLACE).map_or_else(|| env!("CARGO_TARGET_TMPDIR").into(), PathBuf::from)
}

/// All attacks of one row, in processes whose home and environment belong to a place of their own.
fn withstand(row: &'static str) {
    if let Ok(share) = std::env::var(SHARE) {
        return withstand_share(row, share.parse().unwrap());
    }
    let place = || tempfile::Builder::new().prefix("a").tempdir_in(places()).unwrap();
    let parts: Vec<_> = (0..SHARES).map(|share| (share, place())).collect();
    let running: Vec<Child> = parts.iter().map(|(share, place)| again(row, *share, place.path())).collect();
    // Each is waited for before any is judged: none may be left behind.
    let ended: Vec<_> = running.into_iter().map(|mut child| child.wait().unwrap()).collect();
    assert!(ended.iter().all(|status| status.success()), "{row}: {ended:?}");
}

fn again(row: &str, share: usize, place: &Path) -> Child {
    let place = place.canonicalize().unwrap();
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("attacks::{}", row.to_lowercase()), "--nocapture"])
        .env(SHARE, share.to_string())
        .env(PLACE, &place)
        .env("HOME", place.join("home"))
        .env("SSH_AUTH_SOCK", place.join("agent"))
        .env("CANARY_API_KEY", CANARY)
        .spawn()
        .unwrap()
}

fn withstand_share(row: &str, share: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let attacks = table::attacks().into_iter().filter(|attack| attack.row == row);
    let mut tried = 0;
    let mut problems = Vec::new();
    for attack in attacks.skip(share).step_by(SHARES) {
        tried += 1;
        problems.extend(runtime.block_on(layers::problems(&places(), &attack)));
    }
    assert!(tried > 0, "no attack of {row}");
    assert!(
        problems.is_empty(),
        "{} problems with {tried} attacks:\n{}",
        problems.len(),
        problems.join("\n")
    );
}

macro_rules! rows {
    ($($name:ident $row:literal),*) => { $(#[test] fn $name() { withstand($row); })* };
}

rows!(s1 "S1", s2 "S2", s3 "S3", s4 "S4", s5 "S5", s6 "S6", s7 "S7", s9 "S9", s10 "S10", s11 "S11");

/// The examples of the robustness list, as it names them.
const EXAMPLES: [(&str, &[&str]); 10] = [
    (
        "S1",
        &[
            "`echo x; cmd`",
            "`echo $(cmd)`",
            "backticks",
            "`<(cmd)`",
            "`${x:=$(cmd)}`",
            "heredocs",
            "newlines",
            "5,000 spaces",
        ],
    ),
    (
        "S2",
        &[
            "find -exec",
            "find -delete",
            "find -fprintf",
            "sed w",
            "sed e",
            "awk system",
            "rg --pre",
            "sort -o",
            "tar --to-command",
            "xargs",
            "env",
            "git -c",
            "git --output",
            "git --ext-diff",
            "tee",
            "dd",
        ],
    ),
    ("S3", &["`> ~/.zshrc`", "`>>`", "`&>`", "`cd / && rm`", "`cd .agents && echo > config`"]),
    ("S4", &["PATH=.", "LD_PRELOAD", "BASH_ENV", "GIT_", "PAGER", "alias", "function"]),
    (
        "S5",
        &[
            "`/w/proj-evil` for root `/w/proj`",
            "`..`",
            "symlink out",
            "symlink made by bash then followed by write",
            "missing leaf below a symlink",
        ],
    ),
    ("S6", &["a working directory chosen by the model"]),
    (
        "S7",
        &[
            ".git/hooks",
            ".git/config",
            ".mcp.json",
            ".vscode",
            ".idea",
            "shell profiles",
            "our own configuration",
            "our own database",
            "existing",
            "missing",
        ],
    ),
    (
        "S9",
        &[
            "core.fsmonitor",
            "hooksPath",
            "pager",
            "diff.external",
            "textconv",
            "filters",
            "sshCommand",
            "aliases",
        ],
    ),
    (
        "S10",
        &["private", "loopback", "link-local", "metadata", "`allowed.com@evil`", "decimal", "IPv6-mapped"],
    ),
    ("S11", &["DNS", "canary secret in env", "canary secret in files"]),
];

#[test]
fn every_example_of_the_list_is_among_them() {
    let attacks = table::attacks();
    let is_tried = |row: &str, example: &str| {
        attacks.iter().any(|attack| attack.row == row && attack.name.contains(example))
    };
    for (row, examples) in EXAMPLES {
        let missing: Vec<_> = examples.iter().filter(|example| !is_tried(row, example)).collect();
        assert!(missing.is_empty(), "{row}: {missing:?}");
    }
    let with_control = attacks.iter().filter(|attack| attack.reaches.is_some()).count();
    assert!(with_control * 10 >= attacks.len() * 8, "{with_control} of {} have a control", attacks.len());
}

/// Everything here once more without the rights of root: what the kernel allows differs.
#[test]
fn everything_holds_for_an_ordinary_user_too() {
    if std::env::var_os(ORDINARY).is_some() || !rustix::process::getuid().is_root() {
        return;
    }
    let place = tempfile::Builder::new().prefix("o").tempdir_in(places()).unwrap();
    std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let program = place.path().join("tests");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let ended = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"])
        .arg(&program)
        .args(["attacks::", "--test-threads=2"])
        .env(ORDINARY, "1")
        .env(PLACE, place.path())
        .env("HOME", place.path())
        .env("TMPDIR", place.path())
        .current_dir(place.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{text}\n{}", String::from_utf8_lossy(&ended.stderr));
    assert!(text.contains("test result: ok") && !text.contains(" 0 passed"), "{text}");
}
