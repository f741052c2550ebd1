//! Enumerations that Python selects by name. `named!` declares the variants, their names and the error message for an
//! unknown name in one list, so that they cannot diverge.

/// `pub enum Kind: "noun for messages" { Variant = "name", ... }` with `ALL`, `name`, `names` and `named`.
macro_rules! named {
    (
        $(#[$meta:meta])*
        pub enum $Enum:ident: $what:literal { $($(#[$doc:meta])* $Variant:ident = $name:literal,)+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $Enum { $($(#[$doc])* $Variant,)+ }

        impl $Enum {
            /// All variants, in the order of declaration.
            pub const ALL: &'static [$Enum] = &[$($Enum::$Variant),+];

            pub fn name(self) -> &'static str {
                match self { $($Enum::$Variant => $name,)+ }
            }

            /// Iterate over the names of all variants.
            pub fn names() -> impl Iterator<Item = &'static str> {
                Self::ALL.iter().map(|x| x.name())
            }

            pub fn named(name: &str) -> $crate::error::Result<$Enum> {
                Self::ALL.iter().copied().find(|x| x.name() == name).ok_or_else(|| {
                    let known = Self::names().collect::<Vec<_>>().join(", ");
                    $crate::error::Error::Value(format!("no {} {name:?}; there are: {known}", $what))
                })
            }
        }
    };
}
pub(crate) use named;

#[cfg(test)]
mod tests {
    named!(
        pub enum Colour: "colour" {
            Red = "red",
            Green = "dark green",
        }
    );

    #[test]
    fn names_and_variants_correspond() {
        for &colour in Colour::ALL {
            assert_eq!(Colour::named(colour.name()), Ok(colour));
        }
        assert_eq!(Colour::names().collect::<Vec<_>>(), ["red", "dark green"]);
        let message = Colour::named("blue").unwrap_err().to_string();
        assert_eq!(message, "no colour \"blue\"; there are: red, dark green");
    }
}
