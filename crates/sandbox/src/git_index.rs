//! Reads the index of a git repository, versions 2 to 4: modes and names. Runs no git, and takes any bytes.

use std::collections::BTreeSet;

use memchr::memmem;

/// The mode of a module: an entry that leads to another repository.
pub const MODULE: u32 = 0o160_000;
/// The mode of a directory that a sparse index does not list.
const DIRECTORY: u32 = 0o040_000;
/// The bits of a mode that say what an entry is.
const KIND: u32 = 0o170_000;

/// The length of an object's name for SHA-1 and SHA-256: the index does not say which it uses.
const HASHES: [usize; 2] = [20, 32];
/// Times, device, inode, mode, owner and size.
const STAT: usize = 40;
const MODE_AT: usize = 24;
const NAME_LENGTH: usize = 0xfff;
const EXTENDED: u16 = 0x4000;

/// Shows the name of every tracked file. `None` if the index may track more than it lists, or does not parse.
pub fn files(index: &[u8], mut visit: impl FnMut(&[u8])) -> Option<()> {
    let hash = HASHES.into_iter().find(|hash| is_whole(index, *hash))?;
    let mut is_sparse = false;
    entries(index, hash, &mut |mode, name| {
        is_sparse |= mode & KIND == DIRECTORY;
        visit(name);
    });
    (!is_sparse).then_some(())
}

/// Names that git may take for modules: those with that mode. If a part of the index is in another file, or it
/// does not parse, returns every possible name, because the other part has the mode.
pub fn modules(index: &[u8], parts: IndexParts) -> BTreeSet<Vec<u8>> {
    let mut found = BTreeSet::new();
    // Most indexes have none, and this check is faster.
    let has_mode = memmem::find(index, &MODULE.to_be_bytes()).is_some();
    if parts == IndexParts::One && !has_mode && memmem::find(index, LINK).is_none() {
        return found;
    }
    let whole = HASHES.into_iter().find(|hash| is_whole(index, *hash));
    let is_certain = parts == IndexParts::One && whole.is_some();
    // Made-up names lead nowhere, so they do no harm.
    for hash in whole.map_or(HASHES.to_vec(), |hash| vec![hash]) {
        entries(index, hash, &mut |mode, name| {
            if (mode & KIND == MODULE || !is_certain) && !name.is_empty() {
                found.insert(name.to_vec());
            }
        });
    }
    found
}

/// Whether an index is complete in one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexParts {
    One,
    Several,
}

/// The extension that names the file with the other part.
const LINK: &[u8] = b"link";

/// Whether its entries and extensions end where its checksum begins, and no part is in another file.
fn is_whole(index: &[u8], hash: usize) -> bool {
    let Some(mut at) = entries(index, hash, &mut |_, _| {}) else { return false };
    let Some(end) = index.len().checked_sub(hash) else { return false };
    while at < end {
        let (Some(name), Some(size)) = (index.get(at..at + 4), number(index, at + 4)) else { return false };
        // A part of this index is in its own file.
        if name == LINK {
            return false;
        }
        at = at.saturating_add(8).saturating_add(size as usize);
    }
    at == end
}

/// Shows mode and name of each entry; returns the position after the last one, or `None` if the index is cut.
fn entries(index: &[u8], hash: usize, visit: &mut dyn FnMut(u32, &[u8])) -> Option<usize> {
    let version = number(index, 4).filter(|_| index.starts_with(b"DIRC"))?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let mut name = Vec::new();
    let mut at = 12;
    for _ in 0..number(index, 8)? {
        let mode = number(index, at + MODE_AT)?;
        let flags_at = at + STAT + hash;
        let flags = u16::from_be_bytes(index.get(flags_at..flags_at + 2)?.try_into().ok()?);
        let is_extended = version > 2 && flags & EXTENDED != 0;
        let name_at = flags_at + if is_extended { 4 } else { 2 };
        at = match version {
            4 => compressed_name(index, name_at, &mut name)?,
            _ => plain_name(index, at, name_at, usize::from(flags) & NAME_LENGTH, &mut name)?,
        };
        // Git treats names as C strings, which end at a NUL.
        let shown = name.split(|byte| *byte == 0).next().unwrap_or(&name);
        visit(mode, shown);
    }
    Some(at)
}

/// A name and the NULs after it, which pad the entry to a multiple of eight bytes.
fn plain_name(index: &[u8], entry: usize, at: usize, length: usize, name: &mut Vec<u8>) -> Option<usize> {
    let length = match length {
        NAME_LENGTH => memchr::memchr(0, index.get(at..)?)?,
        length => length,
    };
    name.clear();
    name.extend_from_slice(index.get(at..at.checked_add(length)?)?);
    let size = at - entry + length;
    Some(entry + (size + 8) / 8 * 8)
}

/// How many bytes to drop from the end of the previous name, then what to append.
fn compressed_name(index: &[u8], at: usize, name: &mut Vec<u8>) -> Option<usize> {
    let (left_out, at) = variable_number(index, at)?;
    name.truncate(name.len().checked_sub(left_out)?);
    let rest = index.get(at..)?;
    let length = memchr::memchr(0, rest)?;
    name.extend_from_slice(&rest[..length]);
    Some(at + length + 1)
}

fn variable_number(index: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut byte = *index.get(at)?;
    let mut value = usize::from(byte & 127);
    while byte & 128 != 0 {
        at += 1;
        byte = *index.get(at)?;
        value = value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 127))?;
    }
    Some((value, at + 1))
}

fn number(index: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(index.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests;
