//! Fields that are what they should be or nothing: one odd type does not spoil the event it stands in.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// Takes some kinds of JSON; all others pass for nothing.
pub(super) trait Lenient<'de>: Default {
    fn text(_text: Cow<'de, str>) -> Self {
        Self::default()
    }

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
    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<T, E> {
        Ok(T::text(Cow::Borrowed(text)))
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        Ok(T::text(Cow::Owned(text.to_owned())))
    }
    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        Ok(T::number(number))
    }
    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        Ok(u64::try_from(number).map_or_else(|_| T::default(), T::number))
    }
    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        // Counts as floats exist; what is no count becomes 0.
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

/// Borrowed from the event where nothing in it is escaped.
impl<'de: 'a, 'a> Lenient<'de> for Option<Cow<'a, str>> {
    fn text(text: Cow<'de, str>) -> Self {
        Some(text)
    }
}

impl<'de> Lenient<'de> for Option<u64> {
    fn number(number: u64) -> Self {
        Some(number)
    }
}

/// A struct of fields, or a map.
pub(super) trait Fields<'de>: Deserialize<'de> {}

impl<'de, T: Fields<'de>> Lenient<'de> for Option<T> {
    fn object<A: MapAccess<'de>>(object: A) -> Result<Self, A::Error> {
        T::deserialize(MapAccessDeserializer::new(object)).map(Some)
    }
}

impl<'de> Fields<'de> for serde_json::Map<String, Value> {}

/// Items that are nothing are left out where the list is used.
impl<'de, T: Lenient<'de>> Lenient<'de> for Vec<T> {
    fn list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut items = Self::new();
        while let Some(Item(item)) = list.next_element()? {
            items.push(item);
        }
        Ok(items)
    }
}

/// The first item of a list; the others are not kept.
#[derive(Debug, Default)]
pub(super) struct First<T>(pub(super) T);

impl<'de, T: Lenient<'de>> Lenient<'de> for First<T> {
    fn list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let first = list.next_element::<Item<T>>()?;
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(first.map_or_else(Self::default, |Item(item)| Self(item)))
    }
}

struct Item<T>(T);

impl<'de, T: Lenient<'de>> Deserialize<'de> for Item<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        lenient(deserializer).map(Self)
    }
}

/// Text, lists and objects as they are; the rest is null.
impl<'de> Lenient<'de> for Value {
    fn text(text: Cow<'de, str>) -> Self {
        Self::String(text.into_owned())
    }
    fn list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element::<Self>()? {
            items.push(item);
        }
        Ok(Self::Array(items))
    }
    fn object<A: MapAccess<'de>>(object: A) -> Result<Self, A::Error> {
        serde_json::Map::deserialize(MapAccessDeserializer::new(object)).map(Self::Object)
    }
}
