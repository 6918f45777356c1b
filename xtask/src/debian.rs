//! Programs of the distribution that the tests need. Installs them as root, else says exactly what is missing.

use anyhow::{Result, bail};

use crate::house::{House, is_installed, output, run};

/// Program → package. Rust, Node and npm are the machine's own and not ours to install.
const NEEDED: [(&str, &str); 9] = [
    // The browser that looks at the page.
    ("chromium", "chromium"),
    // A desktop's keyring, as keys are kept in it.
    ("dbus-daemon", "dbus-daemon"),
    ("gnome-keyring-daemon", "gnome-keyring"),
    // The sandbox of commands.
    ("bwrap", "bubblewrap"),
    // What searches are held against.
    ("rg", "ripgrep"),
    // Tells which programs a shell really ran.
    ("strace", "strace"),
    // A proxy before a server, as documented.
    ("nginx", "nginx-light"),
    // Terminals that tests look at.
    ("tmux", "tmux"),
    // libFuzzer is C++ and built from source with the fuzz targets.
    ("g++", "g++"),
];

pub(crate) fn install(house: &House) -> Result<()> {
    let missing = missing(&NEEDED, is_installed);
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join(" ");
    if !is_installed("apt-get") {
        bail!("missing: {list}; install them with this system's package manager");
    }
    if output(house.program("id").arg("-u"))?.trim() != "0" {
        bail!("missing: {list}; run `sudo apt-get install {list}`");
    }
    run(house.program("apt-get").arg("update").args(["--quiet", "--quiet"]))?;
    run(house
        .program("apt-get")
        .env("DEBIAN_FRONTEND", "noninteractive")
        .args(["install", "--yes", "--quiet", "--no-install-recommends"])
        .args(missing))
}

fn missing<'a>(needed: &[(&str, &'a str)], is_there: impl Fn(&str) -> bool) -> Vec<&'a str> {
    needed.iter().filter(|(program, _)| !is_there(program)).map(|(_, package)| *package).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_installed() {
        let needed = [("g++", "g++"), ("bwrap", "bubblewrap")];
        assert_eq!(missing(&needed, |program| program == "g++"), ["bubblewrap"]);
        assert_eq!(missing(&needed, |_| true), Vec::<&str>::new());
    }
}
