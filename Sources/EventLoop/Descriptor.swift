import Glibc

/// The sole owner of an open file descriptor. Destroying it closes the descriptor.
@usableFromInline
package struct Descriptor: ~Copyable, Sendable {
    @usableFromInline package let rawValue: CInt

    package init(adopting rawValue: CInt) {
        precondition(rawValue >= 0, "the descriptor is not open")
        self.rawValue = rawValue
    }

    deinit { _ = close(rawValue) }

    /// Gives the descriptor to an owner that closes it.
    package consuming func release() -> CInt {
        let fd = rawValue
        discard self
        return fd
    }
}
