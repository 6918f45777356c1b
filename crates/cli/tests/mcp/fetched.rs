//! Servers that a package runner fetches (`npx`, `uvx`), as documentation everywhere starts them: from a
//! registry on this machine, at both levels of the sandbox.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use attache_testkit::binary::Home;
use serde_json::json;

use crate::peers::peer;
use crate::stage::home;

/// Says in its list of tools whether it could write to the home of its user.
const NPM_SERVER: &str = r#"#!/usr/bin/env node
const fs = require('fs');
let wrote = 'kept_out';
for (const name of ['x', '.npm/x', '.npm/_cacache/x', '.cache/x', '.cache/uv/x'])
  try { fs.writeFileSync(process.env.HOME + '/' + name, ''); wrote = 'wrote_at_home'; } catch {}
const tools = [{ name: wrote, inputSchema: { type: 'object' } }];
require('readline').createInterface({ input: process.stdin }).on('line', line => {
  const { id, method, params } = JSON.parse(line);
  const result = method === 'initialize'
    ? { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'tiny', version: '1' } }
    : { tools };
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result }));
});
"#;

const PYTHON_SERVER: &str = r#"
import json, os, sys
def main():
    wrote = "kept_out"
    for name in ["x", ".npm/x", ".cache/x", ".cache/uv/x", ".local/x"]:
        try:
            open(os.environ["HOME"] + "/" + name, "w").close()
            wrote = "wrote_at_home"
        except OSError:
            pass
    for line in sys.stdin:
        message = json.loads(line)
        if message["method"] == "initialize":
            result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                      "serverInfo": {"name": "tiny", "version": "1"}}
        else:
            result = {"tools": [{"name": wrote, "inputSchema": {"type": "object"}}]}
        if "id" in message:
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

/// Answers requests for these paths, and remembers which they were.
struct Registry {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Registry {
    fn open(files: impl FnOnce(u16) -> BTreeMap<String, Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (files, told) = (Arc::new(files(port)), asked.clone());
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (files, told) = (files.clone(), told.clone());
                std::thread::spawn(move || answer(connection, &files, &told));
            }
        });
        Self { port, asked }
    }

    /// How often the package itself was asked for, not what is said about it.
    fn fetched(&self) -> usize {
        let is_package = |path: &&String| path.ends_with(".tgz") || path.ends_with(".whl");
        self.asked.lock().unwrap().iter().filter(is_package).count()
    }
}

fn answer(mut connection: TcpStream, files: &BTreeMap<String, Vec<u8>>, told: &Mutex<Vec<String>>) {
    let (mut asked, mut piece) = (Vec::new(), [0; 1024]);
    while !asked.windows(4).any(|end| end == b"\r\n\r\n") {
        match connection.read(&mut piece) {
            Ok(0) | Err(_) => return,
            Ok(count) => asked.extend_from_slice(&piece[..count]),
        }
    }
    let asked = String::from_utf8_lossy(&asked).into_owned();
    let path = asked.split(' ').nth(1).unwrap_or_default();
    if asked.starts_with("GET ") {
        told.lock().unwrap().push(path.to_owned());
    }
    let (status, body) = match files.get(path) {
        Some(body) => ("200 OK", body.as_slice()),
        None => ("404 Not Found", &b"{}"[..]),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nCache-Control: max-age=600, immutable\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let body = if asked.starts_with("HEAD ") { &[] } else { body };
    if let Err(error) = connection.write_all(head.as_bytes()).and_then(|()| connection.write_all(body)) {
        eprintln!("the client went away: {error}");
    }
}

/// The bytes that a command of the machine makes of a directory.
fn packed(program: &str, arguments: &[&str], directory: &Path) -> Vec<u8> {
    let made = std::process::Command::new(program).args(arguments).current_dir(directory).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    made.stdout
}

fn npm_registry() -> Registry {
    let place = tempfile::tempdir().unwrap();
    let package = place.path().join("package");
    std::fs::create_dir(&package).unwrap();
    let manifest =
        json!({ "name": "tiny-server", "version": "1.0.0", "bin": { "tiny-server": "server.js" } });
    std::fs::write(package.join("package.json"), manifest.to_string()).unwrap();
    std::fs::write(package.join("server.js"), NPM_SERVER).unwrap();
    let archive = packed("tar", &["-czf", "-", "package"], place.path());
    Registry::open(|port| {
        let mut version = manifest.clone();
        version["dist"] = json!({ "tarball": format!("http://127.0.0.1:{port}/tiny-server-1.0.0.tgz") });
        let package = json!({
            "name": "tiny-server", "dist-tags": { "latest": "1.0.0" }, "versions": { "1.0.0": version },
        });
        BTreeMap::from([
            ("/tiny-server".to_owned(), package.to_string().into_bytes()),
            ("/tiny-server-1.0.0.tgz".to_owned(), archive),
        ])
    })
}

const WHEEL: &str = "tiny_server-1.0.0-py3-none-any.whl";

/// Prints the directory it is in as an archive.
const ZIP: &str = "
import io, os, sys, zipfile
out = io.BytesIO()
with zipfile.ZipFile(out, 'w') as wheel:
    for directory, _, names in os.walk('.'):
        for name in names:
            wheel.write(os.path.join(directory, name))
sys.stdout.buffer.write(out.getvalue())
";

fn wheel_registry() -> Registry {
    let place = tempfile::tempdir().unwrap();
    let about = place.path().join("tiny_server-1.0.0.dist-info");
    std::fs::create_dir(&about).unwrap();
    std::fs::write(place.path().join("tiny_server.py"), PYTHON_SERVER).unwrap();
    let files = [
        ("METADATA", "Metadata-Version: 2.1\nName: tiny-server\nVersion: 1.0.0\n"),
        ("WHEEL", "Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"),
        ("entry_points.txt", "[console_scripts]\ntiny-server = tiny_server:main\n"),
        ("RECORD", "tiny_server.py,,\n"),
    ];
    for (name, text) in files {
        std::fs::write(about.join(name), text).unwrap();
    }
    let wheel = packed("python3", &["-c", ZIP], place.path());
    Registry::open(|_| BTreeMap::from([(format!("/{WHEEL}"), wheel)]))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SandboxLevel {
    Full,
    Reduced,
}

/// `attache mcp test tiny`. Where the level is to be the reduced one, without any bubblewrap on the machine.
fn tested(home: &Home, level: SandboxLevel) -> String {
    static BUBBLEWRAP: OnceLock<PathBuf> = OnceLock::new();
    let bubblewrap = BUBBLEWRAP.get_or_init(|| {
        let path = std::env::var_os("PATH").unwrap();
        let mut places = std::env::split_paths(&path);
        places.find_map(|place| place.join("bwrap").canonicalize().ok()).expect("bubblewrap")
    });
    let mut command = match level {
        SandboxLevel::Full => home.command(),
        SandboxLevel::Reduced => {
            let mut command = home.program(bubblewrap);
            command.args(["--dev-bind", "/", "/", "--ro-bind", "/dev/null"]).arg(bubblewrap).arg("--");
            command.arg(home.binary());
            command
        }
    };
    let output = command.args(["mcp", "test", "tiny"]).as_std_mut().output().unwrap();
    let told =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{level:?}: {told}");
    told
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files_below(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found
}

/// Starts it twice at each level: the second time it is there.
fn starts_from(open: fn() -> Registry, entry: impl Fn(u16) -> String) {
    for level in [SandboxLevel::Full, SandboxLevel::Reduced] {
        let registry = open();
        let own = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        // Those of the user are there, and none of the server's.
        for cache in [".npm/_cacache", ".cache/uv", ".local"] {
            std::fs::create_dir_all(own.path().join(cache)).unwrap();
        }
        let home = home("on *\n  text \"ok\"\n").with_variable("HOME", own.path().to_str().unwrap());
        home.write_config(&format!("[mcp.tiny]\n{}\n", entry(registry.port)));
        let mut fetched = None;
        for start in ["first", "second"] {
            let told = tested(&home, level);
            assert!(
                told.contains("kept_out") && !told.contains("wrote_at_home"),
                "{level:?} {start}: {told}"
            );
            // A runner may look into a package before it takes it.
            let so_far = *fetched.get_or_insert_with(|| registry.fetched());
            assert!(
                so_far > 0 && registry.fetched() == so_far,
                "{level:?}: fetched again at the {start} start"
            );
        }
        assert_eq!(files_below(own.path()), Vec::<PathBuf>::new(), "{level:?}");
    }
}

#[test]
fn npx_fetches_a_server_once_into_a_cache_of_its_own() {
    starts_from(npm_registry, |port| {
        format!(
            "command = [\"npx\", \"-y\", \"tiny-server@1.0.0\"]\nenv = {{ npm_config_registry = \"http://127.0.0.1:{port}/\" }}"
        )
    });
}

#[test]
fn uvx_fetches_a_server_once_into_a_cache_of_its_own() {
    let uvx = json!(peer("uv").join("python/bin/uvx"));
    starts_from(wheel_registry, |port| {
        format!(
            "command = [{uvx}, \"--from\", \"http://127.0.0.1:{port}/{WHEEL}\", \"tiny-server\"]\nenv = {{ UV_PYTHON_DOWNLOADS = \"never\" }}"
        )
    });
}
