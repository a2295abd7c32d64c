//! Integer fields take integers that are written with a fraction or an exponent: `3.0`, `1e3`.
//!
//! JSON has one kind of number, and a sender may write an integer in any form. serde_json gives a reader of an integer only the
//! form without a fraction and an exponent. So where a value did not fit, it is read a second time through [`Integral`], which
//! wraps the deserializer: only where a type requests an integer, the number is read as text and converted without a float.
//! All else passes through, so that floats, texts and [`Number`] get the same as before. A value that fits the first time costs nothing.
//!
//! Below `#[serde(flatten)]`, and in an untagged enum, serde reads a value into a buffer before it knows the field. In the buffer,
//! `3.0` is a float, and an integer field refuses a float. So a value that does not fit the second time either is read a third time
//! with `BUFFERED`: where a type takes any value, an integer is given as an integer, in whatever form it is written. A
//! `serde_json::Value` then shows 3 for 3.0, and an untagged enum takes its first variant that fits an integer, but only in a value
//! that would have been refused. Floats are not exact. So the third reading is left out where the float of a number is an integer, and
//! the digits are not that integer, such as 3.0000000000000000001. A float beyond 2^53 stays a float.

use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor,
};

use super::json::Number;

/// 2^53: an `f64` has every integer up to this one exactly, but not every greater one.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Returns the float as an integer. `None` where it has a fraction, or is more than 2^53 away from zero.
#[expect(clippy::cast_possible_truncation, reason = "an integer that fits")]
fn integer(float: f64) -> Option<i64> {
    (float.fract() == 0.0 && float.abs() <= EXACT).then_some(float as i64)
}

/// Returns whether every number of the JSON whose float is an integer, up to 2^53, is the same integer by its digits.
pub(super) fn has_exact_floats(text: &str) -> bool {
    // A JSON string may hold such words too. The worst effect of them is that the third reading is left out.
    let mut words = text.split(|char: char| !(char.is_ascii_digit() || "+-.eE".contains(char)));
    words.all(|word| {
        let is_float = word.contains(['.', 'e', 'E']);
        let float = word.parse().ok().filter(|_| is_float).and_then(integer);
        let number = float.and_then(|_| serde_json::from_str::<Number>(word).ok());
        number.is_none_or(|number| number.to_i64() == float)
    })
}

/// Reads integers in every form of a JSON number; `BUFFERED`: also those that serde buffers. It wraps each part of a
/// deserialization, from the seed to the innermost visitor.
#[derive(Clone, Copy)]
pub(super) struct Integral<T, const BUFFERED: bool>(pub(super) T);

/// The methods that pass a request on, with the visitor wrapped.
macro_rules! pass_on {
    ($($method:ident($($argument:ident: $type:ty),*))*) => {
        $(
            fn $method<V: Visitor<'de>>(
                self,
                $($argument: $type,)*
                visitor: V,
            ) -> Result<V::Value, Self::Error> {
                self.0.$method($($argument,)* Integral::<_, BUFFERED>(visitor))
            }
        )*
    };
}

/// The methods that read an integer, and the visitor's methods that take it. A number that is not such an integer is given as the float
/// that serde_json would give: the type then refuses it in the same words.
macro_rules! integers {
    ($($method:ident: $($visit:ident)+;)*) => {
        $(
            fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
                let number = Number::read(self.0, &visitor)?;
                $(
                    if let Some(integer) = number.to_integer() {
                        return visitor.$visit(integer);
                    }
                )+
                visitor.visit_f64(number.to_f64_lossy())
            }
        )*
    };
}

impl<'de, D: Deserializer<'de>, const BUFFERED: bool> Deserializer<'de> for Integral<D, BUFFERED> {
    type Error = D::Error;

    integers! {
        deserialize_i8: visit_u64 visit_i64;
        deserialize_i16: visit_u64 visit_i64;
        deserialize_i32: visit_u64 visit_i64;
        deserialize_i64: visit_u64 visit_i64;
        deserialize_i128: visit_i128;
        deserialize_u8: visit_u64 visit_i64;
        deserialize_u16: visit_u64 visit_i64;
        deserialize_u32: visit_u64 visit_i64;
        deserialize_u64: visit_u64 visit_i64;
        deserialize_u128: visit_u128;
    }

    pass_on! {
        deserialize_any() deserialize_bool() deserialize_char() deserialize_str() deserialize_string()
        deserialize_bytes() deserialize_byte_buf() deserialize_option() deserialize_unit() deserialize_seq() deserialize_map()
        deserialize_identifier() deserialize_ignored_any()
        deserialize_unit_struct(name: &'static str)
        deserialize_newtype_struct(name: &'static str)
        deserialize_tuple(length: usize)
        deserialize_tuple_struct(name: &'static str, length: usize)
        deserialize_struct(name: &'static str, fields: &'static [&'static str])
        deserialize_enum(name: &'static str, variants: &'static [&'static str])
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_f32(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_f64(visitor)
    }
}

/// The methods that pass a plain value on.
macro_rules! visits {
    ($($method:ident: $value:ty),* $(,)?) => {
        $(
            fn $method<E: Error>(self, value: $value) -> Result<V::Value, E> {
                self.0.$method(value)
            }
        )*
    };
}

/// The methods that pass a part of the value on, wrapped.
macro_rules! visits_parts {
    ($($method:ident: $part:ident),* $(,)?) => {
        $(
            fn $method<P: $part<'de>>(self, part: P) -> Result<V::Value, P::Error> {
                self.0.$method(Integral::<_, BUFFERED>(part))
            }
        )*
    };
}

impl<'de, V: Visitor<'de>, const BUFFERED: bool> Visitor<'de> for Integral<V, BUFFERED> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    visits! {
        visit_bool: bool, visit_i8: i8, visit_i16: i16, visit_i32: i32, visit_i64: i64, visit_i128: i128,
        visit_u8: u8, visit_u16: u16, visit_u32: u32, visit_u64: u64, visit_u128: u128, visit_f32: f32,
        visit_char: char, visit_str: &str, visit_borrowed_str: &'de str, visit_string: String,
        visit_bytes: &[u8], visit_borrowed_bytes: &'de [u8], visit_byte_buf: Vec<u8>,
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<V::Value, E> {
        match integer(value).filter(|_| BUFFERED) {
            Some(integer) => match u64::try_from(integer) {
                Ok(integer) => self.0.visit_u64(integer),
                Err(_) => self.0.visit_i64(integer),
            },
            None => self.0.visit_f64(value),
        }
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    visits_parts! {
        visit_some: Deserializer, visit_newtype_struct: Deserializer, visit_seq: SeqAccess, visit_map: MapAccess,
        visit_enum: EnumAccess,
    }
}

impl<'de, S: DeserializeSeed<'de>, const BUFFERED: bool> DeserializeSeed<'de>
    for Integral<S, BUFFERED>
{
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Integral::<_, BUFFERED>(json))
    }
}

impl<'de, A: SeqAccess<'de>, const BUFFERED: bool> SeqAccess<'de> for Integral<A, BUFFERED> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Integral::<_, BUFFERED>(seed))
    }
}

/// Keys are texts, so they are read as before.
impl<'de, A: MapAccess<'de>, const BUFFERED: bool> MapAccess<'de> for Integral<A, BUFFERED> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(Integral::<_, BUFFERED>(seed))
    }
}

impl<'de, A: EnumAccess<'de>, const BUFFERED: bool> EnumAccess<'de> for Integral<A, BUFFERED> {
    type Error = A::Error;
    type Variant = Integral<A::Variant, BUFFERED>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), A::Error> {
        let (name, variant) = self.0.variant_seed(seed)?;
        Ok((name, Integral::<_, BUFFERED>(variant)))
    }
}

impl<'de, A: VariantAccess<'de>, const BUFFERED: bool> VariantAccess<'de>
    for Integral<A, BUFFERED>
{
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(Integral::<_, BUFFERED>(seed))
    }

    pass_on! {
        tuple_variant(length: usize)
        struct_variant(fields: &'static [&'static str])
    }
}
