import CLarder
import Glibc

/// The memory of this process.
package enum ProcessMemory {
    /// Keeps other processes of the same user from reading the memory of this one, and keeps it out of core dumps. For a process that holds
    /// the key of an authority.
    ///
    /// The kernel then gives the files of this process below /proc to root.
    /// - Returns: `errno`, or nil.
    package static func hide() -> CInt? { clarder_hide_memory() == 0 ? nil : errno }
}
