import FuzzSupport

@testable import Rules

/// The first line is a pattern, the rest a path. A pattern that is none is refused; of any other, the parts that match make up the path.
@_cdecl("FuzzPathPattern_main")
public func entry(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    unsafe fuzz(count, arguments) { start, count in
        let bytes = unsafe input(start, count)
        let line = bytes.prefix { $0 != UInt8(ascii: "\n") }
        let path = bytes.dropFirst(line.count + 1)
        guard let pattern = PathPattern(String(decoding: line, as: UTF8.self)) else { return 0 }
        _ = pattern.matches(plain: path)
        // An origin that decodes once, merges "/" and resolves dots, and one that does nothing, are among all readings.
        if path.first == UInt8(ascii: "/"), let readings = PathReadings(path), !readings.isObscure {
            precondition(readings.paths.count <= 14 * PathReadings.textsMax, "the number of readings is bounded")
            precondition(
                readings.paths.contains(plainPath(path)) || path.contains(UInt8(ascii: "\\"))
                    || path.contains(UInt8(ascii: ";")), "one reading is the usual one")
        }
        guard let tokens = pathTokens(Array(line)) else { preconditionFailure("a pattern has tokens") }
        let isMatch = pattern.matches(path)
        var rebuilt: [UInt8] = []
        for index in tokens.indices {
            let part = pathPart(index, of: tokens, in: path)
            precondition((part != nil) == isMatch, "a part is there if the path matches")
            rebuilt += part ?? []
        }
        precondition(!isMatch || rebuilt.elementsEqual(path), "the parts are the path")
        return 0
    }
}
