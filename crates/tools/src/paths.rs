//! Paths as models and clients write them, and as people see them. `reach` finds where they lead.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use attache_core::legible::{visible, visible_name};
use attache_core::ports::tool::Workspace;
use attache_sandbox::paths::normal;

use crate::limits::{NEAREST_NAMES, PATH_BYTES};
use crate::markdown::code_span;

/// The path that an argument means: absolute, or relative to the workspace's root; understands `~`, the
/// variables that every command has, `file://` and percent-encoding. A file with exactly the written name takes
/// precedence over the decoded name.
pub(crate) fn absolute(workspace: &Workspace, path: &str) -> Result<PathBuf, String> {
    if path.is_empty() {
        return Err("field `path` must not be empty".to_owned());
    }
    if path.len() > PATH_BYTES {
        return Err(format!("field `path` must have at most {PATH_BYTES} bytes"));
    }
    let written = match local_part(path)? {
        Some(local) => return best(candidates_of_url(local)),
        None => path,
    };
    let based = match at_home(workspace, written)? {
        Some(at_home) => at_home,
        None => at_variable(workspace, written)?.unwrap_or_else(|| workspace.root.join(written)),
    };
    let as_written = based.into_os_string();
    let decoded = decoded(&as_written.to_string_lossy());
    best([Some(as_written), decoded].into_iter().flatten().collect())
}

/// The text after `file://` and the machine's name; `None` if it is no such address.
fn local_part(path: &str) -> Result<Option<&str>, String> {
    let Some(scheme) = path.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("file://")) else {
        return Ok(None);
    };
    let rest = &path[scheme.len()..];
    let rest = match rest.get(..9) {
        Some(host) if host.eq_ignore_ascii_case("localhost") => &rest[9..],
        Some(_) | None => rest,
    };
    match rest.starts_with('/') {
        true => Ok(Some(rest)),
        false => Err("field `path` names a file of another machine".to_owned()),
    }
}

/// An address is encoded by definition and ends before `?` and `#`; one that was not encoded is understood,
/// too.
fn candidates_of_url(local: &str) -> Vec<OsString> {
    let bare = local.split(['?', '#']).next().unwrap_or(local);
    let mut candidates = Vec::new();
    for text in [bare, local] {
        candidates.extend(decoded(text));
        candidates.push(text.into());
    }
    candidates
}

/// `~` and paths below it, unless the workspace has something of that very name.
fn at_home(workspace: &Workspace, path: &str) -> Result<Option<PathBuf>, String> {
    let Some(below) = path.strip_prefix('~').filter(|below| below.is_empty() || below.starts_with('/'))
    else {
        return Ok(None);
    };
    if workspace.root.join("~").symlink_metadata().is_ok() {
        return Ok(None);
    }
    Ok(Some(home(workspace)?.join(below.trim_start_matches('/'))))
}

fn home(workspace: &Workspace) -> Result<&Path, String> {
    workspace.guarded.home().ok_or_else(|| "field `path`: the home directory is not known here".to_owned())
}

/// `$TMPDIR`, `$HOME` and `$PWD` with the values that commands have, and paths below, unless the workspace has
/// something of that very name. Any other variable would become a directory with a dollar sign in its name.
fn at_variable(workspace: &Workspace, path: &str) -> Result<Option<PathBuf>, String> {
    let Some((written, name)) = leading_variable(path) else { return Ok(None) };
    if workspace.root.join(written).symlink_metadata().is_ok() {
        return Ok(None);
    }
    let directory = match name {
        "TMPDIR" => workspace.scratch.as_path(),
        "HOME" => home(workspace)?,
        "PWD" => workspace.root.as_path(),
        _ => {
            return Err(format!(
                "field `path`: variables are not expanded here, only $TMPDIR, $HOME and $PWD are understood; write the \
                 path that {} stands for (./{} is the file of that very name)",
                visible(written),
                visible(written)
            ));
        }
    };
    Ok(Some(directory.join(path[written.len()..].trim_start_matches('/'))))
}

/// A variable that is the whole first name of a path, as written, and its name. `$id.tsx` is a file, and so is
/// `$id` alone, unless every command has a variable of that name.
pub(crate) fn leading_variable(path: &str) -> Option<(&str, &str)> {
    let first = path.split('/').next()?;
    let inner = first.strip_prefix('$')?;
    let name = inner.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).unwrap_or(inner);
    let mut letters = name.chars();
    let is_letter = |letter: char| letter == '_' || letter.is_ascii_alphanumeric();
    let is_name = letters.next().is_some_and(|first| is_letter(first) && !first.is_ascii_digit())
        && letters.all(is_letter);
    let is_known = ["TMPDIR", "HOME", "PWD"].contains(&name);
    (is_name && (is_known || first.len() < path.len())).then_some((first, name))
}

/// The text with percent-encoding decoded; `None` if there is none.
fn decoded(text: &str) -> Option<OsString> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, behind)) = rest.split_first() {
        let pair = behind.get(..2).filter(|_| *first == b'%');
        let value = pair.and_then(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
        let is_encoded = value.is_some() && pair.is_some_and(|pair| pair.iter().all(u8::is_ascii_hexdigit));
        match value.filter(|_| is_encoded) {
            Some(byte) => {
                decoded.push(byte);
                rest = &behind[2..];
            }
            None => {
                decoded.push(*first);
                rest = behind;
            }
        }
    }
    (decoded != bytes).then(|| OsString::from_vec(decoded))
}

/// The candidate of which the most exists; of equals, the first.
fn best(candidates: Vec<OsString>) -> Result<PathBuf, String> {
    let mut paths = Vec::new();
    for candidate in candidates {
        if candidate.as_encoded_bytes().contains(&0) {
            return Err("field `path` must not contain a NUL character".to_owned());
        }
        let path = normal(Path::new(&candidate));
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    // A path with only one reading needs no look at the disk.
    let best = match paths.len() {
        0 | 1 => paths.pop(),
        _ => paths.into_iter().rev().max_by_key(|path| existing_names(path)),
    };
    best.ok_or_else(|| "field `path` must not be empty".to_owned())
}

fn existing_names(path: &Path) -> usize {
    let exists = |path: &&Path| path.symlink_metadata().is_ok();
    path.ancestors().find(exists).map_or(0, |existing| existing.components().count())
}

/// A path in the form that the model can use in its next call: relative to the workspace's root if it lies
/// below it.
pub(crate) fn below<'a>(root: &Path, path: &'a Path) -> &'a Path {
    match path.strip_prefix(root) {
        Ok(below) if below.as_os_str().is_empty() => Path::new("."),
        Ok(below) => below,
        Err(_) => path,
    }
}

/// A path in a title, in backticks so that Markdown leaves it alone.
pub(crate) fn titled(path: &Path, workspace: &Workspace) -> String {
    code_span(&visible(&below(&workspace.root, path).to_string_lossy()))
}

/// A path in a text, with invisible characters written out.
pub(crate) fn told(path: &Path) -> String {
    visible_name(&path.to_string_lossy())
}

/// The end of the sentence "does not exist": names similar to the wanted one.
pub(crate) fn nearest_names(wanted: &str, names: impl Iterator<Item = String>) -> String {
    let names: Vec<_> =
        most_similar(wanted, names).take(NEAREST_NAMES).map(|name| visible_name(&name)).collect();
    if names.is_empty() { String::new() } else { format!("; nearest names there: {}", names.join(", ")) }
}

/// The names that may have been meant, the most similar first.
pub(crate) fn most_similar(
    wanted: &str,
    names: impl Iterator<Item = String>,
) -> impl Iterator<Item = String> {
    let wanted: Cow<'_, str> = wanted.to_lowercase().into();
    let mut scored: Vec<(f64, String)> = names
        .map(|name| (likeness(&wanted, &name.to_lowercase()), name))
        .filter(|(score, _)| *score > 0.6)
        .collect();
    scored.sort_by(|left, right| right.0.total_cmp(&left.0).then_with(|| left.1.cmp(&right.1)));
    scored.into_iter().map(|(_, name)| name)
}

/// Compares by common letters, and by typing errors: in a short name two swapped letters leave few in common.
fn likeness(wanted: &str, name: &str) -> f64 {
    strsim::jaro_winkler(wanted, name).max(strsim::normalized_damerau_levenshtein(wanted, name))
}

#[cfg(test)]
mod tests;
