//! A missing name and one in the row that looks like it: a letter with its accent as one character
//! or as two, a space that does not show, another case, a letter of another script.
//!
//! Names are compared by their letters and digits alone, in upper case. Of NFC, the letters of Latin,
//! Greek, Cyrillic, Arabic and Indic scripts, kana and Hangul are folded. Of NFKC, these are: wide
//! forms, kana of half width, ligatures of Latin, `№`, `℡`, `™`, Roman numerals, numbers in circles,
//! and units and Japanese words in one character. Not folded: ideographs for compatibility, Arabic
//! letters by their place in a word, Hangul of half width, points of Hebrew, fractions, and scripts
//! that are not named here.

use super::deserialize::{push_capped, push_name};
use super::event_error::EventError;
use super::fields::Fields;

/// Adds to the error of a missing field the name in the row that looks like it. `object` is the
/// path of these fields. Nothing is added to an error of another kind, or of a field inside a
/// value.
pub(super) fn name_similar<V>(error: EventError, object: &str, fields: &Fields<V>) -> EventError {
    let Some(missing) = error.missing() else {
        return error;
    };
    let mut path = object.to_owned();
    push_name(&mut path, missing);
    let letters = letters_of(missing);
    let mut names = fields.iter().map(|(name, _)| name);
    let similar = names.find(|name| look_alike(&letters, &letters_of(name)));
    match similar.filter(|_| error.path() == Some(&*path)) {
        Some(name) => {
            let mut reason = String::from("the row has \"");
            // All but ASCII is escaped: the two names may look the same.
            push_capped(&mut reason, name.escape_default());
            reason.push('"');
            error.because(Some(reason))
        }
        None => error,
    }
}

/// A letter or digit in upper case, and whether an accent follows it as a character of its own.
struct Letter {
    base: char,
    is_accented: bool,
}

/// Returns the letters and digits of a name, in upper case and in their plain forms.
fn letters_of(name: &str) -> Vec<Letter> {
    let mut letters: Vec<Letter> = Vec::new();
    let plain: String = name.chars().map(plain).collect();
    let lower = plain.chars().flat_map(char::to_lowercase);
    for char in lower.flat_map(char::to_uppercase) {
        if is_mark(char) {
            if let Some(letter) = letters.last_mut() {
                letter.is_accented = true;
            }
        } else if char.is_alphanumeric() {
            letters.push(Letter {
                base: char,
                is_accented: false,
            });
        }
    }
    letters
}

/// Returns whether a character is the accent, sign or dot of the letter before it, with which it may
/// also be one character: of Latin, Greek and Cyrillic, Arabic, Indic scripts, kana.
fn is_mark(char: char) -> bool {
    matches!(
        char,
        '\u{300}'..='\u{36f}'
            | '\u{653}'..='\u{655}'
            | '\u{93c}'
            | '\u{9bc}'
            | '\u{a3c}'
            | '\u{b3c}'
            | '\u{3099}'
            | '\u{309a}'
    )
}

/// Returns the plain form of a character, which may be several.
fn plain(char: char) -> String {
    let code = u32::from(char);
    match char {
        // The wide forms of `!` to `~`, in the order of ASCII.
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(code - 0xff01 + 0x21).into_iter().collect(),
        // A syllable of Hangul is a first letter, a middle one and perhaps a last one.
        '가'..='힣' => {
            let place = code - u32::from('가');
            let last = place % 28;
            let letters = [
                Some(0x1100 + place / 28 / 21),
                Some(0x1161 + place / 28 % 21),
                (last > 0).then_some(0x11a7 + last),
            ];
            let letters = letters.into_iter().flatten();
            letters.filter_map(char::from_u32).collect()
        }
        _ => match PARTS.iter().find(|(whole, _)| *whole == char) {
            Some((_, parts)) => (*parts).into(),
            None => word_of(code).map_or_else(|| char.into(), String::from),
        },
    }
}

fn word_of(code: u32) -> Option<&'static str> {
    WORDS.iter().find_map(|(first, words)| {
        let place = code.checked_sub(u32::from(*first))?;
        words.split(' ').nth(usize::try_from(place).ok()?)
    })
}

/// Indic vowels that may be written in two or three parts.
const PARTS: [(char, &str); 23] = [
    ('\u{9cb}', "\u{9c7}\u{9be}"),
    ('\u{9cc}', "\u{9c7}\u{9d7}"),
    ('\u{b48}', "\u{b47}\u{b56}"),
    ('\u{b4b}', "\u{b47}\u{b3e}"),
    ('\u{b4c}', "\u{b47}\u{b57}"),
    ('\u{b94}', "\u{b92}\u{bd7}"),
    ('\u{bca}', "\u{bc6}\u{bbe}"),
    ('\u{bcb}', "\u{bc7}\u{bbe}"),
    ('\u{bcc}', "\u{bc6}\u{bd7}"),
    ('\u{c48}', "\u{c46}\u{c56}"),
    ('\u{cc0}', "\u{cbf}\u{cd5}"),
    ('\u{cc7}', "\u{cc6}\u{cd5}"),
    ('\u{cc8}', "\u{cc6}\u{cd6}"),
    ('\u{cca}', "\u{cc6}\u{cc2}"),
    ('\u{ccb}', "\u{cc6}\u{cc2}\u{cd5}"),
    ('\u{d4a}', "\u{d46}\u{d3e}"),
    ('\u{d4b}', "\u{d47}\u{d3e}"),
    ('\u{d4c}', "\u{d46}\u{d57}"),
    ('\u{dda}', "\u{dd9}\u{dca}"),
    ('\u{ddc}', "\u{dd9}\u{dcf}"),
    ('\u{ddd}', "\u{dd9}\u{dcf}\u{dca}"),
    ('\u{dde}', "\u{dd9}\u{ddf}"),
    ('\u{1026}', "\u{1025}\u{102e}"),
];

/// Forms of one character: the first one, and what it and those behind it stand for, in their order.
const WORDS: [(char, &str); 12] = [
    ('\u{2116}', "No"),
    ('\u{2120}', "SM TEL TM"),
    ('\u{213b}', "FAX"),
    ('\u{2160}', "I II III IV V VI VII VIII IX X XI XII L C D M"),
    ('\u{2170}', "i ii iii iv v vi vii viii ix x xi xii l c d m"),
    (
        '\u{2460}',
        "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20",
    ),
    ('\u{3231}', "株 有"),
    ('\u{32ff}', "令和"),
    (
        '\u{3300}',
        "アパート アルファ アンペア アール イニング インチ ウォン エスクード エーカー \
         オンス オーム カイリ カラット カロリー ガロン ガンマ ギガ ギニー キュリー \
         ギルダー キロ キログラム キロメートル キロワット グラム グラムトン クルゼイロ \
         クローネ ケース コルナ コーポ サイクル サンチーム シリング センチ セント \
         ダース デシ ドル トン ナノ ノット ハイツ パーセント パーツ バーレル \
         ピアストル ピクル ピコ ビル ファラッド フィート ブッシェル フラン ヘクタール \
         ペソ ペニヒ ヘルツ ペンス ページ ベータ ポイント ボルト ホン ポンド ホール \
         ホーン マイクロ マイル マッハ マルク マンション ミクロン ミリ ミリバール \
         メガ メガトン メートル ヤード ヤール ユアン リットル リラ ルピー ルーブル \
         レム レントゲン ワット",
    ),
    (
        '\u{3371}',
        "hPa da AU bar oV pc dm dm2 dm3 IU 平成 昭和 大正 明治 株式会社",
    ),
    (
        '\u{3380}',
        "pA nA μA mA kA KB MB GB cal kcal pF nF μF μg mg kg Hz kHz MHz GHz THz μl ml dl \
         kl fm nm μm mm cm km mm2 cm2 m2 km2 mm3 cm3 m3 km3 m∕s m∕s2 Pa kPa MPa GPa rad \
         rad∕s rad∕s2 ps ns μs ms pV nV μV mV kV MV pW nW μW mW kW MW kΩ MΩ a.m. Bq cc \
         cd C∕kg Co. dB Gy ha HP in KK KM kt lm ln log lx mb mil mol PH p.m. PPM PR sr \
         Sv Wb V∕m A∕m",
    ),
    (
        '\u{ff65}',
        "・ ヲ ァ ィ ゥ ェ ォ ャ ュ ョ ッ ー ア イ ウ エ オ カ キ ク ケ コ \
         サ シ ス セ ソ タ チ ツ テ ト ナ ニ ヌ ネ ノ ハ ヒ フ ヘ ホ マ ミ \
         ム メ モ ヤ ユ ヨ ラ リ ル レ ロ ワ ン \u{3099} \u{309a}",
    ),
];

/// Returns whether two names have the same letters, where a letter with an accent may be one
/// character or two, and up to half of the letters may be an ASCII letter in one name and another
/// in the other.
fn look_alike(one: &[Letter], other: &[Letter]) -> bool {
    let mut confusable = 0;
    let mut pairs = one.iter().zip(other);
    let all = pairs.all(|(one, other)| {
        let is_composed = |one: &Letter, other: &Letter| {
            one.is_accented && !other.is_accented && !other.base.is_ascii()
        };
        if one.base == other.base || is_composed(one, other) || is_composed(other, one) {
            return true;
        }
        confusable += 1;
        one.base.is_ascii() != other.base.is_ascii()
    });
    all && !one.is_empty() && one.len() == other.len() && confusable * 2 <= one.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_reader_takes_for_the_same_look_alike() {
        for (one, other, expected) in [
            ("Prénom", "Pre\u{301}nom", true),
            ("Numéro créé", "Nume\u{301}ro cre\u{301}e\u{301}", true),
            ("Имя й", "Имя и\u{306}", true),
            ("がぎ", "か\u{3099}き\u{3099}", true),
            ("ΐ", "ι\u{308}\u{301}", true),
            ("Total", "Total ", true),
            ("Total", "\u{feff}total\u{200b}", true),
            ("Net Total", "Net\u{a0}Total", true),
            ("Net Total", "NetTotal", true),
            ("Total", "TOTAL", true),
            ("Total", "Tоtаl", true), // two Cyrillic letters
            ("Total", "Ｔｏｔａｌ", true),
            ("Office", "Oﬃce", true),
            ("カタカナ", "ｶﾀｶﾅ", true),
            ("ガスパイプ", "ｶﾞｽﾊﾟｲﾌﾟ", true),
            ("サーバー", "ｻｰﾊﾞｰ", true),
            ("ワン", "ﾜﾝ", true),
            ("カタカナ", "ｶﾀｶ", false),
            ("№ 1", "No 1", true),
            ("No", "№", true),
            ("Tel", "℡", true),
            ("重量㎏", "重量kg", true),
            ("㎏", "g", false),
            ("面積㎡", "面積m2", true),
            ("㏟", "A/m", true),
            ("㌔", "キロ", true),
            ("㍗", "ワット", true),
            ("㈱ハ", "(株)ハ", true),
            ("Ⅷ", "VIII", true),
            ("ⅷ", "VIII", true),
            ("⑳", "20", true),
            ("ＮＵＭＢＥＲ～１", "Number~1", true),
            (
                "한글",
                "\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}",
                true,
            ),
            ("이", "\u{110b}\u{1175}", true),
            ("힣", "\u{1112}\u{1175}\u{11c2}", true),
            ("한글", "한굴", false),
            ("가", "각", false),
            ("آخر", "ا\u{653}خر", true),
            ("مسؤول", "مسو\u{654}ول", true),
            ("إسم", "ا\u{655}سم", true),
            ("\u{958}लम", "क\u{93c}लम", true),
            ("\u{9dc}", "ড\u{9bc}", true),
            ("\u{a36}", "ਸ\u{a3c}", true),
            ("\u{b5c}", "ଡ\u{b3c}", true),
            ("க\u{bca}டு", "க\u{bc6}\u{bbe}டு", true),
            ("க\u{bca}டு", "க\u{bc6}டு", false),
            ("\u{ccb}ಕ", "\u{cc6}\u{cc2}\u{cd5}ಕ", true),
            ("Straße", "STRASSE", true),
            ("m2", "m²", true),
            ("Prenom", "Prénom", true),
            ("Total", "Totale", false),
            ("Total", "Tonal", false),
            ("Имя", "Due", false),
            ("Имя", "Дом", false),
            ("", " ", false),
            ("€", "$", false),
        ] {
            let alike = |one, other| look_alike(&letters_of(one), &letters_of(other));
            assert_eq!(alike(one, other), expected, "{one} {other}");
            assert_eq!(alike(other, one), expected, "{other} {one}");
        }
    }
}
