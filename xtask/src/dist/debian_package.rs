//! The Debian package: what the archive has, at its places. Written by hand, so that any machine can make it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::tape::{EntryKind, Tape, ar};
use super::{COMPLETIONS, Release};

/// Target → architecture, as Debian names it.
const ARCHITECTURES: [(&str, &str); 2] =
    [("x86_64-unknown-linux-gnu", "amd64"), ("aarch64-unknown-linux-gnu", "arm64")];

/// Of users, who start it themselves.
const UNIT_PLACE: &str = "./usr/lib/systemd/user/attache.service";

/// The package and its name; `None` for a target without one.
pub(super) fn package(release: &Release, stage: &Path) -> Result<Option<(String, Vec<u8>)>> {
    let Some((_, architecture)) = ARCHITECTURES.iter().find(|(target, _)| *target == release.target) else {
        return Ok(None);
    };
    let places = places(stage)?;
    let size: usize = places.iter().map(|(_, _, content)| content.len()).sum();
    let mut data = Tape::new(release.time);
    for directory in directories(&places) {
        data.entry(&directory, EntryKind::Directory, &[])?;
    }
    for (place, kind, content) in &places {
        data.entry(place, *kind, content)?;
    }
    let mut control = Tape::new(release.time);
    control.entry("./", EntryKind::Directory, &[])?;
    let text = control_file(release, architecture, size)?;
    control.entry("./control", EntryKind::File, text.as_bytes())?;
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", control.compressed()?),
        ("data.tar.gz", data.compressed()?),
    ];
    let name = format!("attache_{}_{architecture}.deb", release.version);
    Ok(Some((name, ar(&members, release.time))))
}

fn control_file(release: &Release, architecture: &str, bytes: usize) -> Result<String> {
    let program = fs::read(&release.program).context("cannot read the program")?;
    let (version, summary) = (&release.version, &release.description);
    Ok(format!(
        "Package: attache\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: The attache authors\n\
         Installed-Size: {}\nDepends: {}\nRecommends: bubblewrap, ca-certificates\nSection: devel\nPriority: optional\n\
         Description: {summary}\n It reads, edits and runs commands in a project, within a sandbox, and asks before it\n \
         changes something. Start with `attache demo`.\n",
        bytes.div_ceil(1024),
        needs(&program),
    ))
}

/// What the program is linked with says its own symbols.
fn needs(program: &[u8]) -> String {
    let text = String::from_utf8_lossy(program);
    let versions = text.split("GLIBC_2.").skip(1).filter_map(|rest| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u32>().ok()
    });
    let newest = versions.max().map_or_else(|| "libc6".to_owned(), |minor| format!("libc6 (>= 2.{minor})"));
    if text.contains("libgcc_s.so.1") { format!("{newest}, libgcc-s1") } else { newest }
}

type Place = (String, EntryKind, Vec<u8>);

fn places(stage: &Path) -> Result<Vec<Place>> {
    let read = |name: &str| fs::read(stage.join(name)).with_context(|| format!("{name} is not there"));
    let mut places = vec![("./usr/bin/attache".to_owned(), EntryKind::Program, read("attache")?)];
    for name in
        ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY.md", "LICENCES.txt"]
    {
        places.push((format!("./usr/share/doc/attache/{name}"), EntryKind::File, read(name)?));
    }
    places.push((UNIT_PLACE.to_owned(), EntryKind::File, read("attache.service")?));
    let copyright = b"Copyright (c) 2026 The attache authors. MIT or Apache-2.0, at your option: LICENSE-MIT, LICENSE-APACHE.\n\
                      What is in it beside: THIRD-PARTY.md, LICENCES.txt.\n";
    places.push(("./usr/share/doc/attache/copyright".to_owned(), EntryKind::File, copyright.to_vec()));
    for entry in fs::read_dir(stage.join("man"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        places.push((format!("./usr/share/man/man1/{name}"), EntryKind::File, read(&format!("man/{name}"))?));
    }
    let homes = [
        ("bash", "./usr/share/bash-completion/completions/attache"),
        ("zsh", "./usr/share/zsh/vendor-completions/_attache"),
        ("fish", "./usr/share/fish/vendor_completions.d/attache.fish"),
    ];
    for (shell, place) in homes {
        let Some((_, file)) = COMPLETIONS.iter().find(|(name, _)| *name == shell) else {
            bail!("there are no completions for {shell}");
        };
        places.push((place.to_owned(), EntryKind::File, read(&format!("completions/{file}"))?));
    }
    places.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(places)
}

/// Those above the places, each before what is in it.
fn directories(places: &[Place]) -> Vec<String> {
    let above =
        places.iter().flat_map(|(place, _, _)| place.match_indices('/').map(|(end, _)| &place[..=end]));
    let mut all: Vec<String> = above.map(str::to_owned).collect();
    all.sort();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_says_which_library_it_needs() {
        assert_eq!(needs(b"..GLIBC_2.17..GLIBC_2.34\0GLIBC_2.4"), "libc6 (>= 2.34)");
        assert_eq!(needs(b"GLIBC_2.39 libgcc_s.so.1"), "libc6 (>= 2.39), libgcc-s1");
        assert_eq!(needs(b"#!/bin/sh"), "libc6");
    }
}
