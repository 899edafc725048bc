//! Figures as inline SVG.
//!
//! `plotters` was looked at and left: it draws pixels for a canvas of a fixed size with the colours
//! written into every shape. A page that adapts its width, its colours (light, dark, print) and its
//! zoom to the reader needs classes, shapes that are grouped by series, and coordinates relative to
//! the plot. So the data lie in an inner `svg` of 10,000 by 1,000 that is stretched to the room
//! there is, with strokes that are not, while text and grid are placed in percent and keep their
//! size. The script zooms by moving the inner view, and takes what it shows on hover from the table
//! below each figure, which a screen reader reads too.

mod draw;
mod labels;
mod path;
mod room;
mod table;

pub(super) use draw::tone_class;
