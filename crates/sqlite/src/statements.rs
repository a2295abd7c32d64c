//! Statements that are prepared when the file is opened, so that a file whose tables do not fit is
//! refused then.

/// Declares a type with these statements, and with one other field.
macro_rules! statements {
    (
        $(#[$doc:meta])*
        $name:ident { $($statement:ident: $sql:expr,)* }
        $($(#[$field_doc:meta])* $field:ident: $type:ty = $value:expr)?
    ) => {
        $(#[$doc])*
        pub(crate) struct $name<'c> {
            $(pub(crate) $statement: rusqlite::Statement<'c>,)*
            $($(#[$field_doc])* $field: $type,)?
        }

        impl<'c> $name<'c> {
            pub(crate) fn prepare(connection: &'c rusqlite::Connection) -> rusqlite::Result<Self> {
                Ok(Self {
                    $($statement: connection.prepare($sql)?,)*
                    $($field: $value,)?
                })
            }
        }
    };
}

pub(crate) use statements;
