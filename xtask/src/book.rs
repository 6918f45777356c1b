//! The documentation as a site: every page is in its table of contents, every link leads somewhere. mdbook
//! builds it where that is installed; what is wrong is found without it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::house::{self, House, is_installed, output};

mod links;

use links::{Link, anchors, links};

const CONTENTS: &str = "docs/SUMMARY.md";

/// Pages of the repository that are no part of the site, but whose links are looked at as well.
const BESIDE: [&str; 3] = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"];

/// Finds what is wrong with pages and links.
pub(crate) fn check(house: &House) -> Result<()> {
    let mut pages = BTreeMap::new();
    read_pages(house, &house.path("docs"), &mut pages)?;
    for name in BESIDE {
        let text = fs::read_to_string(house.path(name)).with_context(|| format!("cannot read {name}"))?;
        pages.insert(name.to_owned(), text);
    }
    let mut findings = contents(&pages);
    findings.extend(broken(&pages, &|path| house.path(path).exists()));
    match findings.is_empty() {
        true => eprintln!("{} pages, all linked", pages.len()),
        false => bail!("{}", findings.join("\n")),
    }
    Ok(())
}

/// The same, and makes the site in `target/book`.
pub(crate) fn build(house: &House) -> Result<()> {
    check(house)?;
    if !is_installed("mdbook") {
        bail!("all pages and links are right; to make the site, run `cargo install mdbook` first");
    }
    let source = house.target().join("book-source");
    if source.exists() {
        fs::remove_dir_all(&source)?;
    }
    copy(&house.path("docs"), &source, "docs/", repository(house)?.as_deref())?;
    let made = house.target().join("book");
    house::run(house.program("mdbook").arg("build").arg(&source).arg("--dest-dir").arg(&made))?;
    eprintln!("{}", made.join("index.html").display());
    Ok(())
}

/// Where the sources are read by people, if the workspace says so.
fn repository(house: &House) -> Result<Option<String>> {
    let metadata = output(house.cargo().args(["metadata", "--format-version", "1", "--no-deps"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    Ok(packages.filter_map(|package| package["repository"].as_str()).next().map(str::to_owned))
}

fn read_pages(house: &House, directory: &Path, pages: &mut BTreeMap<String, String>) -> Result<()> {
    for entry in fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            read_pages(house, &path, pages)?;
        } else if path.extension().is_some_and(|ending| ending == "md") {
            let name = path.strip_prefix(&house.root)?.to_string_lossy().replace('\\', "/");
            pages.insert(name, fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

/// The site shows what is in its contents and nothing else: a page that is not there is nowhere.
fn contents(pages: &BTreeMap<String, String>) -> Vec<String> {
    let Some(summary) = pages.get(CONTENTS) else { return vec![format!("{CONTENTS} is missing")] };
    let mut findings = Vec::new();
    let mut listed = BTreeSet::new();
    for Link { target, line } in links(summary) {
        if !listed.insert(format!("docs/{target}")) {
            findings.push(format!("{CONTENTS}:{line}: {target} is there twice"));
        }
    }
    let site = pages.keys().filter(|page| page.starts_with("docs/") && *page != CONTENTS);
    findings.extend(
        site.filter(|page| !listed.contains(*page)).map(|page| format!("{page} is not in {CONTENTS}")),
    );
    findings
}

fn broken(pages: &BTreeMap<String, String>, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut findings = Vec::new();
    for (page, text) in pages {
        for Link { target, line } in links(text) {
            if let Some(problem) = problem(page, &target, pages, exists) {
                findings.push(format!("{page}:{line}: {problem}"));
            }
        }
    }
    findings
}

fn problem(
    page: &str,
    target: &str,
    pages: &BTreeMap<String, String>,
    exists: &dyn Fn(&str) -> bool,
) -> Option<String> {
    if target.starts_with("https://") {
        return None;
    }
    if target.contains("://") || target.starts_with('/') {
        return Some(format!("{target}: neither a page nor an address with https"));
    }
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let Some(path) = (if path.is_empty() { Some(page.to_owned()) } else { beside(page, path) }) else {
        return Some(format!("{target}: leads out of the repository"));
    };
    match (pages.get(&path), anchor) {
        (Some(text), Some(anchor)) if !anchors(text).contains(anchor) => {
            Some(format!("{target}: {path} has no such heading"))
        }
        (Some(_), _) => None,
        (None, None) if exists(&path) => None,
        (None, _) => Some(format!("{target}: {path} does not exist")),
    }
}

/// What a relative path means on a page; `None` where it leads out.
fn beside(page: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// A site knows nothing of the repository around it: links there get its address, or are left as words.
fn copy(from: &Path, to: &Path, below: &str, repository: Option<&str>) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if path.is_dir() {
            copy(&path, &to.join(&name), &format!("{below}{name}/"), repository)?;
        } else if name.ends_with(".md") {
            let text = fs::read_to_string(&path)?;
            fs::write(to.join(&name), of_site(&text, &format!("{below}{name}"), repository))?;
        } else {
            fs::copy(&path, to.join(&name))?;
        }
    }
    Ok(())
}

fn of_site(text: &str, page: &str, repository: Option<&str>) -> String {
    let mut text = text.to_owned();
    for Link { target, .. } in links(&text.clone()) {
        let path = target.split('#').next().unwrap_or_default();
        let Some(place) = beside(page, path).filter(|place| !path.is_empty() && !place.starts_with("docs/"))
        else {
            continue;
        };
        if target.contains("://") {
            continue;
        }
        text = match repository {
            Some(address) => {
                text.replace(&format!("]({target})"), &format!("]({address}/blob/main/{place})"))
            }
            None => links::without(&text, &target),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(list: &[(&str, &str)]) -> BTreeMap<String, String> {
        list.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn a_page_that_is_not_in_the_contents_is_found() {
        let all = pages(&[(CONTENTS, "- [A](a.md)\n- [A](a.md)"), ("docs/a.md", ""), ("docs/b/c.md", "")]);
        let found = contents(&all);
        assert_eq!(
            found,
            ["docs/SUMMARY.md:2: a.md is there twice", "docs/b/c.md is not in docs/SUMMARY.md"]
        );
    }

    #[test]
    fn every_kind_of_broken_link_is_found() {
        let all = pages(&[
            ("docs/a.md", "# A b\n[x](b/c.md#one) [y](#a-b) [z](../crates/x.txt) [w](https://x.example)\n"),
            ("docs/b/c.md", "# One\n[up](../a.md)\n"),
        ]);
        let exists = |path: &str| path == "crates/x.txt";
        assert_eq!(broken(&all, &exists), Vec::<String>::new());
        for (link, expected) in [
            ("c.md", "docs/c.md does not exist"),
            ("b/c.md#two", "has no such heading"),
            ("#nothing", "has no such heading"),
            ("../crates/y.txt", "crates/y.txt does not exist"),
            ("../../x", "leads out"),
            ("http://x.example", "neither"),
            ("/docs/a.md", "neither"),
        ] {
            let mut all = all.clone();
            all.insert("docs/d.md".into(), format!("# D\n[l]({link})\n"));
            let found = broken(&all, &exists);
            assert!(found.len() == 1 && found[0].contains(expected), "{link}: {found:?}");
        }
    }

    #[test]
    fn links_out_of_the_site_get_an_address_or_are_words() {
        let text = "See [the table](../crates/x.txt) and [b](b.md#c).\n";
        assert_eq!(of_site(text, "docs/a.md", None), "See the table and [b](b.md#c).\n");
        let address = Some("https://forge.example/attache");
        let expected =
            "See [the table](https://forge.example/attache/blob/main/crates/x.txt) and [b](b.md#c).\n";
        assert_eq!(of_site(text, "docs/a.md", address), expected);
    }
}
