//! Figures as inline SVG.
//!
//! The data lie in an inner `svg` of 10,000 by 1,000 units. It is stretched to the size of the
//! plot, with strokes of constant width. Text and grid are placed in percent and keep their size.
//! Series are groups with classes, so that the style sheet decides about width, colours (light,
//! dark, print) and patterns. Libraries such as `plotters` write them into every shape. The script
//! zooms by moving the inner view. It shows values from the table below each figure, which a screen
//! reader reads as well.

mod draw;
mod label_box;
mod labels;
mod path;
mod table;

pub(super) use draw::tone_class;
