//! JSON numbers, in the form of other programs.

/// The program whose form is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbers {
    AsIs,
    /// `JSON.stringify`: 1.0 and 1e0 are 1.
    JavaScript,
    /// `json.dumps`: integers unchanged, the others as floats.
    Python,
}

/// Whether programs write floats so that are not fractions, or are very large or small: 100.0, 1e+20, 1.0E7.
pub(super) fn is_float_of_a_program(number: &[u8]) -> bool {
    number.iter().any(|byte| b"eE".contains(byte)) || number.ends_with(b".0")
}

impl Numbers {
    /// The likeliest first.
    pub(super) const ALL: [Self; 3] = [Self::JavaScript, Self::Python, Self::AsIs];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::AsIs => "as they are",
            Self::JavaScript => "as JavaScript writes them",
            Self::Python => "as Python writes them",
        }
    }

    pub(super) fn write(self, number: &[u8], out: &mut Vec<u8>) {
        match self.rewritten(number) {
            Some(text) => out.extend_from_slice(text.as_bytes()),
            None => out.extend_from_slice(number),
        }
    }

    fn rewritten(self, number: &[u8]) -> Option<String> {
        let text = std::str::from_utf8(number).ok()?;
        let is_integer = !text.contains(['.', 'e', 'E']);
        match self {
            Self::AsIs => None,
            Self::Python if is_integer => (text == "-0").then(|| "0".into()),
            Self::JavaScript | Self::Python => {
                let value: f64 = text.parse().ok()?;
                let decimal = Decimal::of(value)?;
                Some(match self {
                    Self::Python => decimal.python(),
                    _ => decimal.javascript(),
                })
            }
        }
    }
}

/// The shortest digits that give the number, `d.ddd` × 10^`exponent`.
struct Decimal {
    sign: &'static str,
    digits: String,
    exponent: i32,
}

impl Decimal {
    fn of(value: f64) -> Option<Self> {
        let text = value.is_finite().then(|| format!("{value:e}"))?;
        let (mantissa, exponent) = text.split_once('e')?;
        let (sign, mantissa) = match mantissa.strip_prefix('-') {
            Some(mantissa) => ("-", mantissa),
            None => ("", mantissa),
        };
        Some(Self {
            sign,
            digits: mantissa.replace('.', ""),
            exponent: exponent.parse().ok()?,
        })
    }

    fn javascript(&self) -> String {
        if self.digits == "0" {
            return "0".into();
        }
        let sign = self.sign;
        match self.exponent {
            -6..=20 => format!("{sign}{}", self.positional()),
            exponent => format!("{sign}{}e{exponent:+}", self.mantissa()),
        }
    }

    fn python(&self) -> String {
        let sign = self.sign;
        match self.exponent {
            -4..=15 => {
                let text = self.positional();
                let point = if text.contains('.') { "" } else { ".0" };
                format!("{sign}{text}{point}")
            }
            exponent => format!("{sign}{}e{exponent:+03}", self.mantissa()),
        }
    }

    fn mantissa(&self) -> String {
        let (first, rest) = self.digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        format!("{first}{point}{rest}")
    }

    /// Writes the number without an exponent.
    fn positional(&self) -> String {
        let digits = &self.digits;
        let length = digits.len();
        match usize::try_from(self.exponent) {
            Ok(exponent) if exponent + 1 >= length => {
                format!("{digits}{}", "0".repeat(exponent + 1 - length))
            }
            Ok(exponent) => {
                let (whole, fraction) = digits.split_at(exponent + 1);
                format!("{whole}.{fraction}")
            }
            Err(_) => {
                let zeros = usize::try_from(-1 - self.exponent).unwrap_or_default();
                format!("0.{}{digits}", "0".repeat(zeros))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(numbers: Numbers, text: &str) -> String {
        let mut out = Vec::new();
        numbers.write(text.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    /// The output of node and python3 for these numbers.
    #[test]
    fn numbers_are_written_as_their_writers_do() {
        for (text, javascript, python) in [
            ("1", "1", "1"),
            ("1.0", "1", "1.0"),
            ("-0", "0", "0"),
            ("-0.0", "0", "-0.0"),
            ("1e3", "1000", "1000.0"),
            ("1E3", "1000", "1000.0"),
            ("1.50", "1.5", "1.5"),
            ("12.25e1", "122.5", "122.5"),
            ("0.000001", "0.000001", "1e-06"),
            ("0.0001", "0.0001", "0.0001"),
            ("0.00000012", "1.2e-7", "1.2e-07"),
            ("1e20", "100000000000000000000", "1e+20"),
            ("1e21", "1e+21", "1e+21"),
            ("1.5e300", "1.5e+300", "1.5e+300"),
            ("1e16", "10000000000000000", "1e+16"),
            ("1e15", "1000000000000000", "1000000000000000.0"),
            ("9007199254740993", "9007199254740992", "9007199254740993"),
            (
                "18446744073709551617",
                "18446744073709552000",
                "18446744073709551617",
            ),
            ("-12.5", "-12.5", "-12.5"),
        ] {
            assert_eq!(written(Numbers::JavaScript, text), javascript, "{text}");
            assert_eq!(written(Numbers::Python, text), python, "{text}");
        }
        assert_eq!(written(Numbers::JavaScript, "1e999"), "1e999");
        assert_eq!(written(Numbers::AsIs, "1.0"), "1.0");
    }
}
