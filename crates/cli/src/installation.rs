//! Which program this is and how it was installed, judged by its location. Changes nothing: updating is the
//! installer's task.

use std::fmt;
use std::path::{Path, PathBuf};

/// The version, the commit in builds for others, and the target.
pub(crate) const VERSION: &str = env!("BUILT_VERSION");

/// How the program came to this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Installation {
    Npm,
    /// By cargo, from a registry, a repository or a directory, or by `cargo binstall`.
    Cargo,
    Debian,
    Homebrew,
    Nix,
    /// In a checkout, not installed.
    Built,
    /// From an archive, or by hand.
    Copied,
}

impl Installation {
    pub(crate) fn of_this_process() -> Self {
        let named = std::env::current_exe().unwrap_or_default();
        // The path may be a link made by a package manager.
        let program = named.canonicalize().unwrap_or(named);
        Self::of(&program, &|path| std::fs::read_to_string(path).ok())
    }

    /// `read` returns the text of a file, if it exists.
    fn of(program: &Path, read: &dyn Fn(&Path) -> Option<String>) -> Self {
        let has = |name: &str| program.components().any(|part| part.as_os_str() == name);
        if has("node_modules") {
            Self::Npm
        } else if has("Cellar") || program.starts_with("/opt/homebrew") {
            Self::Homebrew
        } else if program.starts_with("/nix/store") {
            Self::Nix
        } else if has("target") && (has("debug") || has("release") || has("dist")) {
            Self::Built
        } else if listed_by_cargo(program, read) {
            Self::Cargo
        } else if listed_by_dpkg(program, read) {
            Self::Debian
        } else {
            Self::Copied
        }
    }

    /// The command that installs a newer version.
    pub(crate) fn renewal(self) -> &'static str {
        match self {
            Self::Npm => "npm install -g attache@latest",
            Self::Cargo => "cargo install attache, or cargo binstall attache",
            Self::Debian => "apt install with the newer package",
            Self::Homebrew => "brew upgrade attache",
            Self::Nix => "what you installed it with",
            Self::Built => "pull, and build again",
            Self::Copied => "put the newer program in its place",
        }
    }
}

impl fmt::Display for Installation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Npm => "installed by npm",
            Self::Cargo => "installed by cargo",
            Self::Debian => "installed from a Debian package",
            Self::Homebrew => "installed by Homebrew",
            Self::Nix => "installed by Nix",
            Self::Built => "built in a checkout",
            Self::Copied => "from an archive or copied here",
        })
    }
}

/// Cargo keeps a list beside its `bin`; `cargo binstall` updates it, too.
fn listed_by_cargo(program: &Path, read: &dyn Fn(&Path) -> Option<String>) -> bool {
    let root = program.parent().filter(|bin| bin.ends_with("bin")).and_then(Path::parent);
    let list = root.and_then(|root| read(&root.join(".crates.toml")));
    list.is_some_and(|list| list.lines().any(|line| line.starts_with("\"attache ")))
}

fn listed_by_dpkg(program: &Path, read: &dyn Fn(&Path) -> Option<String>) -> bool {
    let list = read(&PathBuf::from("/var/lib/dpkg/info/attache.list"));
    list.is_some_and(|list| list.lines().any(|line| Path::new(line) == program))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `cargo run` puts the output of the build script into the program's environment.
    #[test]
    fn what_the_build_says_is_no_setting() {
        let build = include_str!("../build.rs");
        assert!(build.contains("rustc-env=") && !build.contains("rustc-env=ATTACHE_"), "{VERSION}");
    }

    #[test]
    fn where_it_lies_says_how_it_came_there() {
        let read = |path: &Path| {
            let text = match path.to_str()? {
                "/home/ada/.cargo/.crates.toml" => "[v1]\n\"attache 0.1.0 (registry+x)\" = [\"attache\"]\n",
                "/opt/other/.crates.toml" => "[v1]\n\"attachement 1.0.0 (registry+x)\" = [\"x\"]\n",
                "/var/lib/dpkg/info/attache.list" => "/.\n/usr\n/usr/bin\n/usr/bin/attache\n",
                _ => return None,
            };
            Some(text.to_owned())
        };
        for (program, expected) in [
            ("/home/ada/.cargo/bin/attache", Installation::Cargo),
            ("/opt/other/bin/attache", Installation::Copied),
            ("/usr/bin/attache", Installation::Debian),
            ("/usr/local/bin/attache", Installation::Copied),
            ("/usr/lib/node_modules/attache/node_modules/attache-linux-x64/bin/attache", Installation::Npm),
            ("/opt/homebrew/bin/attache", Installation::Homebrew),
            ("/usr/local/Cellar/attache/0.1.0/bin/attache", Installation::Homebrew),
            ("/nix/store/abc-attache/bin/attache", Installation::Nix),
            ("/home/ada/src/attache/target/dist/attache", Installation::Built),
            ("/home/ada/Downloads/attache", Installation::Copied),
        ] {
            assert_eq!(Installation::of(Path::new(program), &read), expected, "{program}");
        }
    }

    #[test]
    fn the_version_names_the_target() {
        let (version, rest) = VERSION.split_once(" (").unwrap();
        assert_eq!(version, env!("CARGO_PKG_VERSION"));
        assert!(rest.ends_with(')') && rest.contains(std::env::consts::ARCH), "{VERSION}");
    }
}
