//! JSON, read into a tree that keeps the text of numbers and every duplicate name.

/// The greatest number of levels that are read. A recursive parser needs a limit.
const LEVELS: usize = 300;

#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Number(String),
    Text(Text),
    Array(Vec<Json>),
    Object(Vec<(Text, Json)>),
}

/// A string, and whether all its bytes and escapes are valid characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text {
    pub text: String,
    pub is_sound: bool,
}

/// The reason why there is no value here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Against the grammar.
    Syntax,
    /// Deeper than this reader goes, or another case that it does not decide.
    NoOpinion,
}

pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Reads the whole text as one value.
    pub fn whole(bytes: &'a [u8]) -> Result<Json, Stop> {
        let mut reader = Self::new(bytes);
        let value = reader.value(LEVELS)?;
        match reader.peek() {
            None => Ok(value),
            Some(_) => Err(Stop::Syntax),
        }
    }

    /// Returns the next byte that is not white space.
    pub fn peek(&mut self) -> Option<u8> {
        while self
            .bytes
            .get(self.at)
            .is_some_and(|byte| b" \t\r\n".contains(byte))
        {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    /// Skips this byte, if it is the next one.
    pub fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    pub fn member_name(&mut self) -> Result<Text, Stop> {
        let name = self.string()?;
        if self.take(b':') {
            Ok(name)
        } else {
            Err(Stop::Syntax)
        }
    }

    pub fn any_value(&mut self) -> Result<Json, Stop> {
        self.value(LEVELS)
    }

    fn value(&mut self, levels: usize) -> Result<Json, Stop> {
        match self.peek().ok_or(Stop::Syntax)? {
            b'"' => Ok(Json::Text(self.string()?)),
            b'{' | b'[' if levels == 0 => Err(Stop::NoOpinion),
            b'{' => self.object(levels - 1),
            b'[' => self.array(levels - 1),
            b't' => self.word("true", Json::Bool(true)),
            b'f' => self.word("false", Json::Bool(false)),
            b'n' => self.word("null", Json::Null),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &str, value: Json) -> Result<Json, Stop> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(Stop::Syntax);
        }
        self.at += word.len();
        Ok(value)
    }

    fn object(&mut self, levels: usize) -> Result<Json, Stop> {
        self.take(b'{');
        let mut members = Vec::new();
        if self.take(b'}') {
            return Ok(Json::Object(members));
        }
        loop {
            let name = self.member_name()?;
            members.push((name, self.value(levels)?));
            if self.take(b'}') {
                return Ok(Json::Object(members));
            }
            if !self.take(b',') {
                return Err(Stop::Syntax);
            }
        }
    }

    fn array(&mut self, levels: usize) -> Result<Json, Stop> {
        self.take(b'[');
        let mut items = Vec::new();
        if self.take(b']') {
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value(levels)?);
            if self.take(b']') {
                return Ok(Json::Array(items));
            }
            if !self.take(b',') {
                return Err(Stop::Syntax);
            }
        }
    }

    /// `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`
    fn number(&mut self) -> Result<Json, Stop> {
        let start = self.at;
        self.skip_one_of(b"-");
        let whole = self.digits();
        if whole.is_empty() || (whole.len() > 1 && whole[0] == b'0') {
            return Err(Stop::Syntax);
        }
        if self.skip_one_of(b".") && self.digits().is_empty() {
            return Err(Stop::Syntax);
        }
        if self.skip_one_of(b"eE") {
            self.skip_one_of(b"+-");
            if self.digits().is_empty() {
                return Err(Stop::Syntax);
            }
        }
        let text = String::from_utf8(self.bytes[start..self.at].to_vec());
        Ok(Json::Number(text.unwrap()))
    }

    fn digits(&mut self) -> &'a [u8] {
        let start = self.at;
        while self.skip_one_of(b"0123456789") {}
        &self.bytes[start..self.at]
    }

    fn skip_one_of(&mut self, bytes: &[u8]) -> bool {
        let is_one = self
            .bytes
            .get(self.at)
            .is_some_and(|byte| bytes.contains(byte));
        self.at += usize::from(is_one);
        is_one
    }

    fn string(&mut self) -> Result<Text, Stop> {
        if !self.take(b'"') {
            return Err(Stop::Syntax);
        }
        // UTF-16 units from escapes are kept here until their second half is read.
        let (mut bytes, mut is_sound, mut high) = (Vec::new(), true, None::<u32>);
        loop {
            let &byte = self.bytes.get(self.at).ok_or(Stop::Syntax)?;
            self.at += 1;
            let unit = match byte {
                b'\\' => Some(self.escape()?),
                _ => None,
            };
            if let Some(first) = high.take() {
                if let Some((second @ 0xDC00..=0xDFFF, true)) = unit {
                    let char = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                    push(&mut bytes, char);
                    continue;
                }
                is_sound = false;
            }
            match (byte, unit) {
                (b'"', _) => break,
                (0..=0x1f, _) => return Err(Stop::Syntax),
                (_, Some((unit @ 0xD800..=0xDBFF, true))) => high = Some(unit),
                (_, Some((0xDC00..=0xDFFF, true))) => is_sound = false,
                (_, Some((char, _))) => push(&mut bytes, char),
                (byte, None) => bytes.push(byte),
            }
        }
        let is_sound = is_sound && std::str::from_utf8(&bytes).is_ok();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(Text { text, is_sound })
    }

    /// Reads the escape after a backslash, and returns whether it was written as `\u`.
    fn escape(&mut self) -> Result<(u32, bool), Stop> {
        let &byte = self.bytes.get(self.at).ok_or(Stop::Syntax)?;
        self.at += 1;
        let char = match byte {
            b'"' | b'\\' | b'/' => byte.into(),
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => 0x0a,
            b'r' => 0x0d,
            b't' => 0x09,
            b'u' => {
                let digits = self.bytes.get(self.at..self.at + 4).ok_or(Stop::Syntax)?;
                self.at += 4;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return Err(Stop::Syntax);
                }
                let digits = std::str::from_utf8(digits).unwrap();
                return Ok((u32::from_str_radix(digits, 16).unwrap(), true));
            }
            _ => return Err(Stop::Syntax),
        };
        Ok((char, false))
    }
}

fn push(bytes: &mut Vec<u8>, char: u32) {
    let char = char::from_u32(char).unwrap();
    bytes.extend(char.to_string().bytes());
}

impl Json {
    /// Returns the values of all members of this name; none where this is not an object.
    pub fn all<'j>(&'j self, name: &str) -> Vec<&'j Json> {
        let Self::Object(members) = self else {
            return Vec::new();
        };
        let named = members.iter().filter(|(other, _)| other.text == name);
        named.map(|(_, value)| value).collect()
    }

    /// This value and all below it.
    pub fn everything(&self) -> Vec<&Json> {
        let mut all = vec![self];
        match self {
            Self::Array(items) => all.extend(items.iter().flat_map(Self::everything)),
            Self::Object(members) => {
                all.extend(members.iter().flat_map(|(_, value)| value.everything()));
            }
            _ => {}
        }
        all
    }

    /// Returns the number of levels of objects and arrays.
    pub fn depth(&self) -> usize {
        match self {
            Self::Array(items) => 1 + items.iter().map(Self::depth).max().unwrap_or(0),
            Self::Object(members) => {
                1 + members
                    .iter()
                    .map(|(_, value)| value.depth())
                    .max()
                    .unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// Returns the same value with the members of every object sorted by name. Members of one name
    /// keep their order.
    pub fn sorted(self) -> Self {
        match self {
            Self::Array(items) => Self::Array(items.into_iter().map(Self::sorted).collect()),
            Self::Object(members) => {
                let mut members: Vec<_> = members
                    .into_iter()
                    .map(|(name, value)| (name, value.sorted()))
                    .collect();
                members.sort_by(|(one, _), (other, _)| one.cmp(other));
                Self::Object(members)
            }
            other => other,
        }
    }
}
