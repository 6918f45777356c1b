//! Fields that fall back to their default if they have the wrong type, so that one odd field does not spoil its
//! event.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::escaped::Escaped;

/// Raw JSON of the event. We parse only what we use, and accept strings that serde_json would refuse.
#[derive(Clone, Copy, Debug, Default, serde::Deserialize)]
#[serde(transparent)]
pub(super) struct Raw<'a>(#[serde(borrow)] Option<&'a RawValue>);

impl<'a> Raw<'a> {
    /// `None` also for null.
    pub(super) fn json(self) -> Option<&'a str> {
        self.0.map(RawValue::get).filter(|json| *json != "null")
    }

    /// The text, unless it is empty.
    pub(super) fn text(self) -> Option<String> {
        self.0.filter(|_| self.is_text()).map(|raw| Escaped::of(raw).unescaped())
    }

    pub(super) fn is_text(self) -> bool {
        self.0.is_some_and(|raw| raw.get().starts_with('"') && raw.get() != "\"\"")
    }

    pub(super) fn starts_with(self, character: char) -> bool {
        self.0.is_some_and(|raw| raw.get().starts_with(character))
    }

    /// Returns the default if the value does not have this type or does not parse.
    pub(super) fn read<T: Lenient<'a>>(self) -> T {
        let json = self.json().filter(|json| json.starts_with(['[', '{']));
        let read = json.and_then(|json| lenient(&mut serde_json::Deserializer::from_str(json)).ok());
        read.unwrap_or_default()
    }
}

/// Accepts some kinds of JSON; every other kind becomes the default.
pub(super) trait Lenient<'de>: Default {
    fn number(_number: u64) -> Self {
        Self::default()
    }

    fn list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }

    fn object<A: MapAccess<'de>>(mut object: A) -> Result<Self, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }
}

/// For `deserialize_with`.
pub(super) fn lenient<'de, D: Deserializer<'de>, T: Lenient<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_any(Anything(PhantomData))
}

struct Anything<T>(PhantomData<T>);

impl<'de, T: Lenient<'de>> Visitor<'de> for Anything<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON")
    }
    fn visit_str<E: Error>(self, _: &str) -> Result<T, E> {
        Ok(T::default())
    }
    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        Ok(T::number(number))
    }
    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        Ok(u64::try_from(number).map_or_else(|_| T::default(), T::number))
    }
    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        // Some servers send counts as floats; a value that is no count becomes 0.
        Ok(T::number(number as u64))
    }
    fn visit_bool<E: Error>(self, _: bool) -> Result<T, E> {
        Ok(T::default())
    }
    fn visit_unit<E: Error>(self) -> Result<T, E> {
        Ok(T::default())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::list(list)
    }
    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<T, A::Error> {
        T::object(object)
    }
}

impl<'de> Lenient<'de> for Option<u64> {
    fn number(number: u64) -> Self {
        Some(number)
    }
}

/// A struct of fields, or a map.
pub(super) trait LenientStruct<'de>: Deserialize<'de> {}

impl<'de, T: LenientStruct<'de>> Lenient<'de> for Option<T> {
    fn object<A: MapAccess<'de>>(object: A) -> Result<Self, A::Error> {
        T::deserialize(MapAccessDeserializer::new(object)).map(Some)
    }
}

impl<'de, T: LenientStruct<'de>> LenientStruct<'de> for Box<T> {}

impl<'de> LenientStruct<'de> for serde_json::Map<String, serde_json::Value> {}

/// Leaves out items that did not parse.
impl<'de, T: LenientStruct<'de>> Lenient<'de> for Vec<T> {
    fn list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut items = Self::new();
        while let Some(LenientItem(item)) = list.next_element::<LenientItem<Option<T>>>()? {
            items.extend(item);
        }
        Ok(items)
    }
}

/// Every item of a list, as it is.
#[derive(Debug, Default)]
pub(super) struct Each<'a>(pub(super) Vec<Raw<'a>>);

impl<'de: 'a, 'a> Lenient<'de> for Each<'a> {
    fn list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Self(items))
    }
}

/// The first item of a list; the others are not kept.
#[derive(Debug)]
pub(super) struct FirstItem<T>(pub(super) Option<T>);

impl<T> Default for FirstItem<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: LenientStruct<'de>> Lenient<'de> for FirstItem<T> {
    fn list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let first = list.next_element::<LenientItem<Option<T>>>()?;
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self(first.and_then(|LenientItem(item)| item)))
    }
}

struct LenientItem<T>(T);

impl<'de, T: Lenient<'de>> Deserialize<'de> for LenientItem<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        lenient(deserializer).map(Self)
    }
}
