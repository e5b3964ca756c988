import FuzzSupport

@testable import EventLoop

/// Any text is a hosts file. Lines count each for itself, so the file in two halves that are cut between lines has the same names, and each name
/// has addresses that are all different.
@_cdecl("FuzzHostsFile_main")
public func entry(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    unsafe fuzz(count, arguments) { start, count in
        let text = unsafe input(start, count)
        let whole = HostsFile(text: text).addresses
        for (name, addresses) in whole {
            precondition(!name.isEmpty && !addresses.isEmpty, "a name has an address")
            precondition(Set(addresses).count == addresses.count, "an address counts once")
            precondition(!name.utf8.contains { $0 == 0x20 || $0 == 0x09 || $0 == 0x0A }, "white space ends a name")
        }
        guard let border = text[(text.count / 2)...].firstIndex(of: 0x0A) else { return 0 }
        let (first, second) = (Array(text[..<border]), Array(text[border...]))
        let parts = HostsFile(text: first).addresses.merging(HostsFile(text: second).addresses) { $0 + $1 }
        precondition(parts.mapValues { Set($0) } == whole.mapValues { Set($0) }, "lines depend on each other")
        return 0
    }
}
