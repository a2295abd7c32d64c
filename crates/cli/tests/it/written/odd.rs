/// 2 odd */ things (`dm_odd`).
#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
pub struct Row2OddThings {
    /// type: TEXT.
    pub r#type: Option<String>,
    /// Type: TEXT.
    #[serde(rename = "Type")]
    pub type_2: Option<String>,
    /// self: TEXT.
    #[serde(rename = "self")]
    pub self_: Option<String>,
    /// 2nd "try": TEXT.
    #[serde(rename = "2nd \"try\"")]
    pub _2nd_try: Option<String>,
    /// 日付: TEXT.
    #[serde(rename = "日付")]
    pub property: Option<String>,
    /// 名前: TEXT.
    #[serde(rename = "名前")]
    pub property_2: Option<String>,
    /// a b : TEXT.
    #[serde(rename = "a\nb\u{202e}")]
    pub a_b: Option<String>,
    /// camelCase: TEXT.
    #[serde(rename = "camelCase")]
    pub camel_case: Option<String>,
    /// ok: FORMULA.
    pub ok: Option<hookgate::event::Json>,
}
