//! Stores names and bytes as text and back, whatever bytes they are: each byte becomes the character of its
//! number.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

fn bytes<E: Error>(text: &str) -> Result<Vec<u8>, E> {
    let one = |character| u8::try_from(character).map_err(|_| E::custom("a character is no byte"));
    text.chars().map(one).collect()
}

pub(super) mod contents {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(contents: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&text(contents))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        bytes(&String::deserialize(from)?)
    }
}

pub(super) mod optional_path {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
        path.as_ref().map(|path| text(path.as_os_str().as_bytes())).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        let path = |text: String| Ok(PathBuf::from(OsString::from_vec(bytes(&text)?)));
        text.map(path).transpose()
    }
}

pub(super) mod path {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(path: &std::path::Path, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&text(path.as_os_str().as_bytes()))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        Ok(PathBuf::from(OsString::from_vec(bytes(&String::deserialize(from)?)?)))
    }
}

pub(super) mod map {
    use super::*;

    pub(crate) fn serialize<S: Serializer, K: AsRef<OsStr>, V: Serialize>(
        map: &BTreeMap<K, V>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_map(map.iter().map(|(key, value)| (text(key.as_ref().as_bytes()), value)))
    }

    pub(crate) fn deserialize<'de, D, K, V>(from: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        D: Deserializer<'de>,
        K: From<OsString> + Ord,
        V: Deserialize<'de>,
    {
        let read: BTreeMap<String, V> = BTreeMap::deserialize(from)?;
        read.into_iter().map(|(key, value)| Ok((OsString::from_vec(bytes(&key)?).into(), value))).collect()
    }
}

pub(super) mod set {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(set: &BTreeSet<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(set.iter().map(|path| text(path.as_os_str().as_bytes())))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeSet<PathBuf>, D::Error> {
        let read: Vec<String> = Vec::deserialize(from)?;
        read.iter().map(|path| Ok(PathBuf::from(OsString::from_vec(bytes(path)?)))).collect()
    }
}
