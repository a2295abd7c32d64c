/// Orders (`dm_orders`).
///
/// One row an order, with a property of each type
#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
pub struct Order {
    /// Customer: TEXT.
    #[serde(rename = "Customer")]
    pub customer: String,
    /// Quantity: NUMBER.
    #[serde(rename = "Quantity")]
    pub quantity: Option<hookgate::event::Number>,
    /// Due: DATE.
    #[serde(rename = "Due")]
    pub due: Option<hookgate::event::Date>,
    /// Status: SELECT, one of `open`, `paid`, `cancelled`.
    #[serde(rename = "Status")]
    pub status: Option<String>,
    /// Tags: MULTI_SELECT.
    #[serde(rename = "Tags")]
    pub tags: Option<Vec<String>>,
    /// Gift: CHECKBOX.
    #[serde(rename = "Gift")]
    pub gift: Option<bool>,
    /// Client: RELATION of rows of `dm_clients`.
    #[serde(rename = "Client")]
    pub client: Option<Vec<hookgate::event::RowId>>,
    /// Invoice: FILE.
    #[serde(rename = "Invoice")]
    pub invoice: Option<Vec<hookgate::event::File>>,
    /// Total: CURRENCY.
    #[serde(rename = "Total")]
    pub total: Option<hookgate::event::Number>,
}
