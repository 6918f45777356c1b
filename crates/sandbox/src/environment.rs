//! The environment of child processes: an allow-list, so that no key or token of ours reaches a command.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use attache_core::ports::tool::WriteGrant;

use crate::caches;
use crate::programs::{Programs, is_fixed_place};

/// Directories and languages. None of these is a secret or gives access to one (no agent sockets).
const PASSED: [&str; 29] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "JAVA_HOME",
    "NVM_DIR",
    "PNPM_HOME",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "NIX_PATH",
    "NO_COLOR",
    "CI",
];

/// Passed if the address contains no password.
const PROXIES: [&str; 4] = ["http_proxy", "https_proxy", "all_proxy", "no_proxy"];

/// Where programs keep what they could make again and refuse to work without: the home is not writable in a
/// sandbox. By the cache's name in `caches.txt`: where the user's own is writable, it is used.
const CACHES: [(&str, &str, &str); 3] = [
    ("go-build", "GOCACHE", "cache/go-build"),
    ("npm-content", "npm_config_cache", "cache/npm"),
    ("uv", "UV_CACHE_DIR", "cache/uv"),
];

/// Set for every command: there is no terminal and no person to answer. Git reads without locks, and runs no
/// program that a repository names as the watcher of its files.
const SET: [(&str, &str); 8] = [
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_CONFIG_COUNT", "1"),
    ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
    ("GIT_CONFIG_VALUE_0", "false"),
];

/// Set unless the user has set them, even to nothing.
const SET_BY_DEFAULT: [(&str, &str); 2] = [("NO_COLOR", "1"), ("CI", "true")];

/// The variables of `ours` that a command gets, with those we set.
pub fn for_command(
    ours: impl Iterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    let given = ours.filter(|(name, value)| passes(name, value)).filter_map(|(name, value)| {
        let value = if name == "PATH" { absolute_places(&value)? } else { value };
        Some((name, value))
    });
    // If several have the same name, the last one counts.
    let set = |(name, value): (&str, &str)| (name.into(), value.into());
    SET_BY_DEFAULT.map(set).into_iter().chain(given).chain(SET.map(set))
}

/// For a command that runs unasked: it finds no program in the workspace.
pub fn for_call(
    ours: impl Iterator<Item = (OsString, OsString)>,
    writes: WriteGrant,
    programs: &Programs,
) -> Vec<(OsString, OsString)> {
    let given = for_command(ours);
    match writes {
        WriteGrant::Granted => given.collect(),
        WriteGrant::Withheld => {
            let path = programs.path_of_the_machine().map(|path| (OsString::from("PATH"), path));
            given.filter(|(name, _)| name != "PATH").chain(path).collect()
        }
    }
}

/// Removes relative and empty places for programs: they mean the command's current directory, which may be
/// anywhere. Places in `/proc` can mean that too, so that a file there could pass for any program. If no place
/// is left, there is no variable: an empty one would mean the current directory again.
fn absolute_places(path: &OsStr) -> Option<OsString> {
    let absolute: Vec<_> = std::env::split_paths(path).filter(|place| is_fixed_place(place)).collect();
    std::env::join_paths(absolute).ok().filter(|path| !path.is_empty())
}

/// Lists of places where programs, the dynamic loader and interpreters look for code.
const CODE_PLACES: [&str; 7] =
    ["PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "NODE_PATH", "PERL5LIB", "RUBYLIB", "CLASSPATH"];

/// For a program of the user that nothing holds and that starts in a workspace: no list names that directory,
/// as each entry does that is relative or empty (`PYTHONPATH=/lib:`). What lies there is code of whoever wrote
/// the project.
pub fn without_relative_places(
    ours: impl Iterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    ours.filter_map(|(name, value)| {
        let is_list = name.to_str().is_some_and(|name| CODE_PLACES.contains(&name));
        let value = if is_list { absolute_places(&value)? } else { value };
        Some((name, value))
    })
}

/// The same for a command that may write little more than `scratch` outside of its roots, and the user's caches
/// of these names.
pub fn for_confined(
    ours: impl Iterator<Item = (OsString, OsString)>,
    scratch: &Path,
    writable_caches: &[String],
) -> impl Iterator<Item = (OsString, OsString)> {
    let moved = CACHES.iter().filter(|(cache, ..)| !writable_caches.iter().any(|name| name == cache));
    let caches: Vec<(OsString, OsString)> =
        moved.map(|(_, name, place)| ((*name).into(), scratch.join(place).into())).collect();
    for_command(ours).chain([("TMPDIR".into(), scratch.into())]).chain(caches)
}

fn passes(name: &OsStr, value: &OsStr) -> bool {
    let has_password = |name: &str| is_proxy(name) && value.as_encoded_bytes().contains(&b'@');
    name.to_str().is_some_and(|name| is_ordinary(name) && !has_password(name))
}

fn is_proxy(name: &str) -> bool {
    PROXIES.contains(&name.to_ascii_lowercase().as_str())
}

fn is_ordinary(name: &str) -> bool {
    PASSED.contains(&name) || name.starts_with("LC_") || is_proxy(name) || caches::is_variable(name)
}

/// Prefix for the names of variables on their way to a confined program.
const ON_THE_WAY: &str = "ATTACHE_FOR_GUEST_";

/// What a program that builds the sandbox (bubblewrap, our helper) gets of the confined program's variables. It
/// runs before anything is confined, and the dynamic loader and the C library obey many variables (`LD_*`,
/// `GLIBC_TUNABLES`, `GCONV_PATH`, `LOCPATH`, `MALLOC_*`, `NLSPATH`, `HOSTALIASES`, …; each library and each
/// system has more). So only those that every command gets and that load no code keep their names. The others
/// get meaningless names, and `on_arrival` gives them their own again.
pub(crate) fn for_builder(
    given: impl Iterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    given.map(|(name, value)| match is_harmless(&name) {
        true => (name, value),
        false => (on_the_way(&name), value),
    })
}

/// The value of a renamed variable, in the process that is about to become the confined program.
pub(crate) fn on_arrival(name: &OsStr, get: impl Fn(&OsStr) -> Option<OsString>) -> Option<OsString> {
    match is_harmless(name) {
        true => get(name),
        false => get(&on_the_way(name)),
    }
}

fn on_the_way(name: &OsStr) -> OsString {
    let mut marked = OsString::from(ON_THE_WAY);
    marked.push(name);
    marked
}

fn is_harmless(name: &OsStr) -> bool {
    let is_set = |name: &str| SET.iter().chain(&SET_BY_DEFAULT).any(|(set, _)| *set == name);
    name.to_str().is_some_and(|name| is_ordinary(name) || is_set(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_passes_without_a_password_only() {
        let ours = [("HTTPS_PROXY", "http://proxy:3128"), ("http_proxy", "http://u:canary@proxy:3128")];
        let ours = ours.map(|(name, value)| (name.into(), value.into()));
        let names: Vec<_> = for_command(ours.into_iter()).map(|(name, _)| name).collect();
        assert!(names.contains(&"HTTPS_PROXY".into()) && !names.contains(&"http_proxy".into()), "{names:?}");
    }

    #[test]
    fn no_list_of_places_for_code_names_the_directory_of_a_start() {
        let ours = [
            ("LD_LIBRARY_PATH", "/opt/lib:"),
            ("PYTHONPATH", ".:lib:/opt/py::/proc/self/cwd"),
            ("NODE_PATH", ""),
            ("WORDS", ".:"),
        ];
        let ours = ours.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let kept: Vec<(OsString, OsString)> = without_relative_places(ours.into_iter()).collect();
        let expected = [("LD_LIBRARY_PATH", "/opt/lib"), ("PYTHONPATH", "/opt/py"), ("WORDS", ".:")];
        assert_eq!(kept, expected.map(|(name, value)| (name.into(), value.into())));
    }

    #[test]
    fn what_the_loader_obeys_reaches_the_guest_alone() {
        let obeyed = [
            "LD_PRELOAD",
            "LD_AUDIT",
            "LD_LIBRARY_PATH",
            "GLIBC_TUNABLES",
            "GCONV_PATH",
            "LOCPATH",
            "MALLOC_ARENA_MAX",
            "NLSPATH",
            "HOSTALIASES",
            "DYLD_INSERT_LIBRARIES",
            "API_KEY",
            "ATTACHE_FOR_GUEST_LD_PRELOAD",
        ];
        let names = obeyed.iter().chain(&["PATH", "LC_ALL", "GIT_PAGER", "CI"]);
        let given = names.clone().map(|name| (OsString::from(name), OsString::from(format!("of {name}"))));
        let built: Vec<(OsString, OsString)> = for_builder(given).collect();
        for (name, _) in &built {
            assert!(!obeyed[..obeyed.len() - 1].iter().any(|obeyed| name == OsStr::new(obeyed)), "{name:?}");
        }
        let get = |wanted: &OsStr| {
            let found = built.iter().find(|(name, _)| name == wanted);
            found.map(|(_, value)| value.clone())
        };
        for name in names {
            assert_eq!(on_arrival(OsStr::new(name), get), Some(format!("of {name}").into()), "{name}");
        }
        assert_eq!(on_arrival(OsStr::new("LD_BIND_NOW"), get), None);
    }

    #[test]
    fn a_confined_command_writes_to_its_scratch() {
        let ours = [("TMPDIR".into(), "/tmp".into()), ("GOCACHE".into(), "/own".into())];
        let last = |wanted: &str, caches: &[String]| {
            let given = for_confined(ours.clone().into_iter(), Path::new("/s"), caches);
            given.filter(|(name, _)| name == wanted).last().map(|(_, value)| value)
        };
        assert_eq!(last("TMPDIR", &[]).unwrap(), "/s");
        assert_eq!(last("GOCACHE", &[]).unwrap(), "/s/cache/go-build");
        assert_eq!(last("UV_CACHE_DIR", &[]).unwrap(), "/s/cache/uv", "uv does nothing without one");
        let own = ["go-build".to_owned(), "npm-content".to_owned()];
        assert_eq!(last("GOCACHE", &own).unwrap(), "/own", "the user's own can be written");
        assert_eq!(last("npm_config_cache", &own), None);
    }

    #[test]
    fn only_what_is_listed_passes() {
        let ours =
            ["PATH", "LC_ALL", "ANTHROPIC_API_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "BASH_ENV", "TERM"];
        let ours = ours.into_iter().map(|name| (name.into(), "/ours".into()));
        let names: Vec<_> = for_command(ours).map(|(name, value)| format!("{name:?}={value:?}")).collect();
        let (passed, set) = names[SET_BY_DEFAULT.len()..].split_at(2);
        assert_eq!(passed, [r#""PATH"="/ours""#, r#""LC_ALL"="/ours""#]);
        assert_eq!(set[0], r#""TERM"="dumb""#);
        assert_eq!(set.len(), SET.len());
    }

    #[test]
    fn what_the_user_has_set_stays_and_the_terminal_is_none() {
        let given = |ours: &[(&str, &str)], wanted: &str| {
            let ours: Vec<_> = ours.iter().map(|(name, value)| (name.into(), value.into())).collect();
            for_command(ours.into_iter()).filter(|(name, _)| name == wanted).last().map(|(_, value)| value)
        };
        assert_eq!(given(&[], "CI"), Some("true".into()));
        assert_eq!(given(&[], "NO_COLOR"), Some("1".into()));
        assert_eq!(given(&[("CI", "")], "CI"), Some("".into()));
        assert_eq!(given(&[("NO_COLOR", ""), ("TERM", "xterm")], "NO_COLOR"), Some("".into()));
        assert_eq!(given(&[("TERM", "xterm")], "TERM"), Some("dumb".into()));
    }

    #[test]
    fn programs_are_only_looked_for_in_absolute_places() {
        let given = |path: &str| {
            let ours = [(OsString::from("PATH"), OsString::from(path))];
            for_command(ours.into_iter()).find(|(name, _)| name == "PATH").map(|(_, value)| value)
        };
        assert_eq!(given("/usr/bin:/bin"), Some("/usr/bin:/bin".into()));
        assert_eq!(given(":/usr/bin::.:bin:../x:/bin:"), Some("/usr/bin:/bin".into()));
        assert_eq!(given("/proc/self/cwd/bin:/usr/bin:/dev/fd/0"), Some("/usr/bin".into()));
        assert_eq!(given(".:bin"), None);
        assert_eq!(given(""), None);
    }

    #[test]
    fn a_command_that_nobody_was_asked_about_finds_no_program_of_the_project() {
        let path = OsString::from("/w/.venv/bin:/usr/bin:.:/w");
        let programs = Programs::new(Some(path.as_os_str()), [std::path::PathBuf::from("/w")].iter());
        let given = |writes| {
            let ours = [(OsString::from("PATH"), path.clone())];
            let mut given = for_call(ours.into_iter(), writes, &programs).into_iter();
            given.find(|(name, _)| name == "PATH").map(|(_, value)| value)
        };
        assert_eq!(given(WriteGrant::Withheld), Some("/usr/bin".into()));
        assert_eq!(
            given(WriteGrant::Granted),
            Some("/w/.venv/bin:/usr/bin:/w".into()),
            "the user's own choice"
        );
    }

    #[test]
    fn git_runs_no_watcher_that_a_repository_names() {
        let place = tempfile::tempdir().unwrap();
        let git = |arguments: &[&str]| {
            let output = std::process::Command::new("git")
                .args(arguments)
                .current_dir(place.path())
                .env_clear()
                .envs(for_command(std::env::vars_os()))
                .env("HOME", place.path())
                .output()
                .unwrap();
            assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        };
        git(&["init", "--quiet", "."]);
        git(&["config", "core.fsmonitor", "touch ran; false"]);
        git(&["status", "--short"]);
        assert!(!place.path().join("ran").exists());
        let bare = std::process::Command::new("git")
            .args(["status", "--short"])
            .current_dir(place.path())
            .env_remove("GIT_CONFIG_COUNT")
            .output()
            .unwrap();
        assert!(bare.status.success() && place.path().join("ran").exists(), "the repository names one");
    }
}
