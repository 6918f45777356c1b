//! What both kinds of metadata share: an object whose keys replace those of another.

use serde_json::Value;

/// Reads a value, if it has the expected shape.
pub(super) fn read<T: serde::de::DeserializeOwned>(value: Option<&Value>) -> Option<T> {
    T::deserialize(value?).ok()
}

/// What both kinds share.
macro_rules! stored_as_object {
    ($meta:ty) => {
        impl $meta {
            /// The stored form.
            pub fn as_map(&self) -> &Map<String, Value> {
                &self.0
            }

            /// Whether it has no keys.
            pub fn is_empty(&self) -> bool {
                self.0.is_empty()
            }

            /// Copies every key of another patch, nulls included.
            pub fn set_all(&mut self, patch: &Self) {
                self.0.extend(patch.0.clone());
            }

            /// Applies a patch.
            pub fn merge(&mut self, patch: &Self) {
                for (key, value) in &patch.0 {
                    if value.is_null() {
                        self.0.shift_remove(key);
                    } else {
                        self.0.insert(key.clone(), value.clone());
                    }
                }
            }
        }

        impl From<Map<String, Value>> for $meta {
            fn from(stored: Map<String, Value>) -> Self {
                Self(stored)
            }
        }
    };
}

pub(super) use stored_as_object;
