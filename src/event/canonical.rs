//! One text for each JSON value, however it was written.

use serde_json::Value;

use super::json::Json;

/// A number of this size or more may be rounded as a 64-bit float, so it is not taken for an integer.
const EXACT_INTEGERS: f64 = 9_007_199_254_740_992.0;

impl Json {
    /// Returns the value in one form, for a comparison by meaning: values of the same meaning have the same text. `1.50` is
    /// written as `1.5`, the fields of an object in the order of their names, and no text with more escapes than it needs. Texts,
    /// dates included, and the order of an array do count.
    ///
    /// It is not the form of RFC 8785. A value that cannot be read, since it is nested too deep, is returned as it was written.
    ///
    /// ```
    /// use hookgate::Json;
    ///
    /// let canonical = |text| serde_json::from_str::<Json>(text).map(|json| json.canonical());
    /// assert_eq!(canonical(r#"{"b":[1e2],"a":12.50}"#)?, canonical(r#"{ "a": 12.5, "b": [100] }"#)?);
    /// assert_ne!(canonical("12.5")?, canonical("\"12.5\"")?);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn canonical(&self) -> String {
        let mut text = String::new();
        match self.to::<Value>() {
            Ok(value) => write(&value, &mut text),
            // Nested too deep, or with a name that serde_json reserves.
            Err(_) => text.push_str(self.as_str()),
        }
        text
    }
}

/// Writes numbers in one form and fields in one order.
fn write(value: &Value, text: &mut String) {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float)
                if number.is_f64() && float.fract() == 0.0 && float.abs() < EXACT_INTEGERS =>
            {
                text.push_str(&format!("{float:.0}").replace("-0", "0"));
            }
            _ => text.push_str(&number.to_string()),
        },
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|field| field.0);
            text.push('{');
            for (name, item) in fields {
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write(item, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Null | Value::Bool(_) | Value::String(_) => text.push_str(&value.to_string()),
    }
}
