//! A file that says what git runs but is unreadable now counts neither as absent nor as unchanged.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use super::*;

/// A process holds a lease on a file: opening it waits, or fails with "try again".
struct Lease(Child);

impl Lease {
    fn on(file: &Path) -> Self {
        let script = "import fcntl,signal,sys\nsignal.signal(signal.SIGIO,signal.SIG_IGN)\nf=open(sys.argv[1],'r+')\n\
                      fcntl.fcntl(f,1024,fcntl.F_WRLCK)\nprint('held',flush=True)\nsys.stdin.read()";
        let mut holder = Command::new("python3")
            .args(["-c", script])
            .arg(file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "held\n");
        Self(holder)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

#[test]
fn configuration_that_can_not_be_read_is_told_and_not_taken_for_absent() {
    let place = Project::new();
    place.in_root(
        "echo '[user]' > ../outside/team.config && git config include.path ../../outside/team.config",
    );
    let guard = place.guard();
    let lease = Lease::on(&place.base.join("outside/team.config"));
    let told = guard.after().unwrap();
    assert!(told.contains("team.config could not be read through"), "{told}");
    drop(lease);
    assert_eq!(guard.after(), None);
    drop(guard);
    // If the user cannot read it either, and never could, there is nothing to report.
    place.in_root("rm ../outside/team.config && mkdir ../outside/team.config");
    let guard = place.guard();
    assert_eq!(guard.after(), None);
}

#[test]
fn an_index_that_can_not_be_read_is_told() {
    without_rights(|| {
        let place = Project::new();
        place.in_root("git init -q sub && cp .git/index sub/.git/index");
        let guard = place.guard();
        place.in_root("chmod 000 sub/.git/index");
        let told = guard.after().unwrap();
        assert!(told.contains("sub/.git/index could not be read"), "{told}");
        place.in_root("chmod 644 sub/.git/index");
        assert_eq!(guard.after(), None);
    });
}

/// We cannot look through it, so we cannot restore it either: only the user knows what is right.
#[test]
fn a_change_in_configuration_that_is_too_large_is_told() {
    let place = Project::new();
    place.in_root(
        "git init -q sub && seq 5000 | sed 's|.*|[branch \"b&\"]\\n\\tremote = o|' >> sub/.git/config",
    );
    let guard = place.guard();
    place.in_root("touch b");
    assert_eq!(guard.after(), None);
    place.in_root("git -C sub config core.fsmonitor \"$BASE/run\"");
    let told = guard.after().unwrap();
    assert!(told.contains("sub/.git/config is too large"), "{told}");
    assert!(place.base.join("root/sub/.git/config").exists(), "its user's own stays");
}

#[test]
fn a_repository_that_can_not_be_found_out_runs_something_for_all_we_know() {
    let place = Project::new();
    let root = place.base.join("root");
    let general = place.base.join("gitconfig");
    assert!(!is_run_by(std::slice::from_ref(&general), &root), "there is none");
    std::fs::create_dir(&general).unwrap();
    assert!(is_run_by(std::slice::from_ref(&general), &root));
    let below = root.join("below");
    std::fs::create_dir(&below).unwrap();
    std::os::unix::fs::symlink(".git", below.join(".git")).unwrap();
    assert!(is_run_by(&[], &below));
    assert!(
        configurations(&below).contains(&below.join(".git")),
        "who asks for it reads nothing there either"
    );
}

#[test]
fn what_was_remembered_of_earlier_commands_and_can_not_be_read_is_told() {
    let place = Project::new();
    place.in_root("mkdir -p sub/.vscode && echo '{}' > sub/.vscode/tasks.json");
    let guard = place.guard();
    place.in_root("mv sub/.vscode sub/v");
    assert_eq!(guard.after(), None);
    drop(guard);
    let kept = place.base.join("own/scratch/.sandbox/baselines");
    let is_moved = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("moved-");
    let mut files = kept.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let moved = files.find(is_moved).expect("what was moved is remembered");
    std::fs::write(&moved, "{").unwrap();
    let told = place.guard().after().unwrap();
    assert!(told.contains("what earlier commands moved away is not known"), "{told}");
}
