/// What one step of a compressor or decompressor did. Both are driven the same way: give input and room, move on by what
/// was taken and made, and come again while `needsRoom`, with what is left of the input.
package struct StreamStep: Equatable, Sendable {
    /// Bytes of the input taken.
    package var consumed = 0
    /// Bytes written into the room given.
    package var produced = 0
    /// The room was too small: more comes out, perhaps without further input.
    package var needsRoom = false

    package init() {}
}
