//! Enums whose variants have stable names, in reports and on the command line.

/// Declares an enum: each variant stands with its name. `ALL` lists the variants in their order,
/// and `name` returns the name.
#[macro_export]
macro_rules! names {
    (
        $(#[$meta:meta])*
        $vis:vis enum $enum:ident {
            $($(#[$variant_meta:meta])* $variant:ident = $name:literal,)*
        }
    ) => {
        $(#[$meta])*
        $vis enum $enum {
            $($(#[$variant_meta])* $variant,)*
        }

        impl $enum {
            /// All of them, in their order.
            $vis const ALL: [$enum; [$($name),*].len()] = [$($enum::$variant,)*];

            /// The stable name.
            $vis fn name(self) -> &'static str {
                match self {
                    $($enum::$variant => $name,)*
                }
            }
        }
    };
}
pub use names;
