//! A container with nothing in it but the libraries of C: the program is put there out of an archive, by the
//! commands of docs/installing.md, finds a model server, and talks.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::stage::{chat_server, says};

const PROGRAM: &str = env!("CARGO_BIN_EXE_attache");

/// The libraries that the program names, at their places below `root`.
fn copy_libraries(root: &Path) -> Vec<String> {
    let output = Command::new("ldd").arg(PROGRAM).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let paths = said.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    let mut names = Vec::new();
    for path in paths {
        let place = root.join(path.trim_start_matches('/'));
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::copy(path, &place).unwrap();
        names.push(place.file_name().unwrap().to_string_lossy().into_owned());
    }
    names
}

/// Where the archives of a release are (`cargo xtask dist`); without it the test packs its own program.
const PACKAGES: &str = "TEST_PACKAGES";

/// The commands below "From the archive", up to the one that tries what was installed.
fn documented() -> Vec<&'static str> {
    let page = include_str!("../../../../docs/installing.md");
    let section = page.split("## From the archive").nth(1).expect("the section");
    let block = section.split("```sh\n").nth(1).expect("its commands").split("```").next().unwrap();
    block.lines().take_while(|line| *line != "attache demo").collect()
}

/// Carries out what is documented, with `root` for the root of the machine.
fn install(root: &Path) {
    let commands = documented();
    let named = commands[0].strip_prefix("tar -xzf ").expect("the archive is unpacked first");
    let folder = named.strip_suffix(".tar.gz").unwrap();
    assert!(folder.starts_with(concat!("attache-", env!("CARGO_PKG_VERSION"), "-")), "{folder}");
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    match std::env::var_os(PACKAGES).map(PathBuf::from) {
        Some(packages) => {
            for name in [named, "SHA256SUMS"] {
                std::fs::copy(packages.join(name), place.path().join(name)).unwrap();
            }
        }
        None => pack(place.path(), folder, named),
    }
    let target = root.join("usr/local/bin").display().to_string();
    let script = commands.join("\n").replace("sudo ", "").replace("/usr/local/bin", &target);
    sh(place.path(), &script);
}

fn pack(place: &Path, folder: &str, archive: &str) {
    std::fs::create_dir(place.join(folder)).unwrap();
    std::fs::hard_link(PROGRAM, place.join(folder).join("attache"))
        .or_else(|_| std::fs::copy(PROGRAM, place.join(folder).join("attache")).map(drop))
        .unwrap();
    sh(
        place,
        &format!("tar -I 'gzip -1' -cf {archive} {folder}\nsha256sum {archive} > SHA256SUMS\nrm -r {folder}"),
    );
}

fn sh(place: &Path, script: &str) {
    let output = Command::new("sh").args(["-ec", script]).current_dir(place).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
}

fn run(root: &Path, server: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new("bwrap");
    command.arg("--bind").arg(root).arg("/");
    command.args(["--dev", "/dev", "--proc", "/proc", "--clearenv", "--setenv", "HOME", "/home/ada"]);
    command.args(["--setenv", "OLLAMA_BASE_URL", &format!("{server}/v1"), "--chdir", "/home/ada/project"]);
    // Like the machines of the other tests: no server but this one.
    for vendor in ["LLAMACPP", "VLLM", "LMSTUDIO"] {
        command.args(["--setenv", &format!("{vendor}_BASE_URL"), "http://127.0.0.1:9/v1"]);
    }
    command.arg("/usr/local/bin/attache").args(arguments).output().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn with_nothing_but_libc_it_finds_a_server_and_talks() {
    let server = chat_server().await;
    let place = tempfile::tempdir().unwrap();
    let root = place.path();
    for directory in ["usr/local/bin", "home/ada/project", "tmp", "dev", "proc"] {
        std::fs::create_dir_all(root.join(directory)).unwrap();
    }
    install(root);
    for library in copy_libraries(root) {
        let is_c =
            ["libc.so", "libm.so", "libgcc_s.so", "ld-linux"].iter().any(|name| library.starts_with(name));
        assert!(is_c, "docs/installing.md does not name {library}");
    }

    let text = |output: &Output| {
        let all = [&output.stdout[..], &output.stderr[..]].concat();
        String::from_utf8_lossy(&all).into_owned()
    };
    let doctor = run(root, &server.url(), &["doctor"]);
    let said = text(&doctor);
    assert_eq!(doctor.status.code(), Some(0), "{said}");
    says(
        &said,
        &[
            "warn  shell          neither bash nor sh on this machine",
            "warn  sandbox        none: each command asks",
            "ok    model          ollama/qwen3-coder",
            "Ready.",
        ],
    );
    let talk = run(root, &server.url(), &["chat", "-p", "Are you there?"]);
    assert_eq!((talk.status.code(), text(&talk).as_str()), (Some(0), "hello\n"));
    // What is installed is the one that was packed.
    let version = run(root, &server.url(), &["--version"]);
    assert!(text(&version).starts_with(concat!("attache ", env!("CARGO_PKG_VERSION"))), "{}", text(&version));
    let demo = run(root, &server.url(), &["demo"]);
    assert_eq!(demo.status.code(), Some(1), "{}", text(&demo));
    says(
        &text(&demo),
        &["attache: the demo runs a command, and there is neither bash nor sh on this machine"],
    );
}
