//! Integer fields take integers that are written with a fraction or an exponent: `3.0`, `1e3`.
//!
//! JSON has one kind of number, and a sender may write an integer in any form. serde_json gives a reader of an integer only the
//! form without a fraction and an exponent. So where a value did not fit, it is read a second time through [`Integral`], which
//! wraps the deserializer: only where a type requests an integer, the number is read as text and converted without a float.
//! All else passes through, so that floats, texts and [`Number`] get the same as before. Good values pay nothing.
//!
//! Below `#[serde(flatten)]`, and in an untagged enum, serde reads any value into a buffer before the field is known: it has made a
//! float of `3.0`, and an integer field refuses a float. So a value that does not fit the second time either is read a third time
//! with `BUFFERED`: where a type takes any value, an integer is given as an integer, in whatever form it is written. A
//! `serde_json::Value` then shows 3 for 3.0, and an untagged enum takes its first variant that fits an integer, but only in a value
//! that would have been refused. Floats are not exact, so no value is read so that has a number which only its float makes an
//! integer, such as 3.0000000000000000001; and no integer beyond 2^53 is changed.

use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};

use super::number::Number;

/// Reads a type, and its integers in every form of a JSON number. `BUFFERED`: also those that serde buffers.
pub(super) struct WithIntegers<T, const BUFFERED: bool = false>(pub(super) T);

impl<'de, T: Deserialize<'de>, const BUFFERED: bool> Deserialize<'de>
    for WithIntegers<T, BUFFERED>
{
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        T::deserialize(Integral::<_, BUFFERED>(json)).map(Self)
    }
}

/// The greatest integer below which every integer is a float.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Returns the integer that a float is, up to 2^53.
#[expect(clippy::cast_possible_truncation, reason = "an integer that fits")]
fn integer(float: f64) -> Option<i64> {
    (float.fract() == 0.0 && float.abs() <= EXACT).then_some(float as i64)
}

/// Returns whether every number of the text that is an integer as a float is that integer by its digits.
pub(super) fn has_exact_floats(text: &str) -> bool {
    let is_of_number = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    let mut rest = text;
    // A number follows neither a quote nor a letter; within a text anything may stand, and is only compared.
    while let Some(at) = rest.find(|char: char| char.is_ascii_digit() || char == '-') {
        let from = rest.get(at..).unwrap_or_default();
        let end = from.bytes().position(|byte| !is_of_number(byte));
        let (number, behind) = from.split_at(end.unwrap_or(from.len()));
        rest = behind;
        let is_float = number.contains(['.', 'e', 'E']);
        let float = number.parse().ok().and_then(integer);
        if let Some(float) = float.filter(|_| is_float)
            && let Ok(number) = serde_json::from_str::<Number>(number)
            && number.to_i64() != Some(float)
        {
            return false;
        }
    }
    true
}

/// Wraps each part of a deserialization, from the outermost deserializer to the innermost visitor.
struct Integral<T, const BUFFERED: bool>(T);

/// The methods that pass a request on, with the visitor wrapped.
macro_rules! pass_on {
    ($($method:ident)*) => {
        $(
            fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
                self.0.$method(Integral::<_, BUFFERED>(visitor))
            }
        )*
    };
}

/// The methods that read an integer of at most 64 bits. A number that is no such integer is given as the float that serde_json
/// would give: the type then refuses it in the same words.
macro_rules! integers {
    ($($method:ident)*) => {
        $(
            fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
                let number = Number::read(self.0, &visitor)?;
                match (number.to_u64(), number.to_i64()) {
                    (Some(integer), _) => visitor.visit_u64(integer),
                    (None, Some(integer)) => visitor.visit_i64(integer),
                    (None, None) => visitor.visit_f64(number.to_f64_lossy()),
                }
            }
        )*
    };
}

impl<'de, D: Deserializer<'de>, const BUFFERED: bool> Deserializer<'de> for Integral<D, BUFFERED> {
    type Error = D::Error;

    integers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let number = Number::read(self.0, &visitor)?;
        match number.to_i128() {
            Some(integer) => visitor.visit_i128(integer),
            None => visitor.visit_f64(number.to_f64_lossy()),
        }
    }

    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let number = Number::read(self.0, &visitor)?;
        match number.to_u128() {
            Some(integer) => visitor.visit_u128(integer),
            None => visitor.visit_f64(number.to_f64_lossy()),
        }
    }

    pass_on! {
        deserialize_any deserialize_bool deserialize_char deserialize_str deserialize_string
        deserialize_bytes deserialize_byte_buf deserialize_option deserialize_unit deserialize_seq deserialize_map
        deserialize_identifier deserialize_ignored_any
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_f32(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_f64(visitor)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0
            .deserialize_unit_struct(name, Integral::<_, BUFFERED>(visitor))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0
            .deserialize_newtype_struct(name, Integral::<_, BUFFERED>(visitor))
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0
            .deserialize_tuple(length, Integral::<_, BUFFERED>(visitor))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = Integral::<_, BUFFERED>(visitor);
        self.0.deserialize_tuple_struct(name, length, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0
            .deserialize_struct(name, fields, Integral::<_, BUFFERED>(visitor))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0
            .deserialize_enum(name, variants, Integral::<_, BUFFERED>(visitor))
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
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

    fn visit_some<D: Deserializer<'de>>(self, json: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Integral::<_, BUFFERED>(json))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, json: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(Integral::<_, BUFFERED>(json))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(Integral::<_, BUFFERED>(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Integral::<_, BUFFERED>(map))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(Integral::<_, BUFFERED>(data))
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

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
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

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
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

    fn tuple_variant<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0
            .tuple_variant(length, Integral::<_, BUFFERED>(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0
            .struct_variant(fields, Integral::<_, BUFFERED>(visitor))
    }
}
