import FuzzSupport
import Message

@testable import Credentials

private let text = Array("ghp_Qm7Zt0RkW2vLx9Bd4HsYc6NpEuJa1FgT3oXi".utf8)
private let secret = Secret("abab/+\"abcabab")
private let placeholder = Placeholder(
    id: "p", text: text, credential: "forge", job: nil, issuedAt: WallTime(secondsSinceEpoch: 0), endsAt: nil)
private let index = PlaceholderIndex([placeholder])
private let places: PlaceholderPlaces = {
    var places = PlaceholderPlaces()
    places.json = [["a", "b"], ["k"]]
    places.form = ["k"]
    places.query = ["k"]
    places.fields = ["X-Key"]
    places.path = true
    return places
}()

/// The input is a piece of a message, in which 1 stands for the placeholder and 2 for the secret. How it is cut changes nothing, what passes the
/// mask has the length that it had and no secret, and where a placeholder is replaced there was one.
private let now = Moment(uptime: .zero, wallTime: WallTime(secondsSinceEpoch: 1))

@_cdecl("FuzzPlaceholders_main")
public func entry(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    unsafe fuzz(count, arguments) { start, count in
        let bytes = unsafe input(start, count).flatMap { $0 == 1 ? text : $0 == 2 ? secret.bytes : [$0] }
        let cuts = splits(bytes)
        precondition(findings(bytes, cuts) == findings(bytes, []), "cuts hide no placeholder")

        var mask = SecretMask(secret, standIn: nil)
        let whole = mask.apply(to: bytes)
        precondition(whole.count == bytes.count && !contains(whole, secret.bytes), "the secret is hidden")
        mask = SecretMask(secret, standIn: nil)
        let pieces = pieces(bytes, cuts).flatMap { mask.take($0) } + mask.finish()
        precondition(pieces == whole, "cuts do not change what the mask shows")

        for syntax in [MemberSyntax.json, .form] {
            let body = try? PlaceholderBody(
                bytes, syntax, places, credential: "forge", index, now: now)
            if let body {
                precondition(findings(bytes, []) == 1, "one placeholder was there")
                precondition(findings(body.replacing(by: Secret("s")), []) == 0, "none is left")
            }
        }
        let use = try? PlaceholderExamination(Fields(), target: bytes[...], index).use(
            places, now: now)
        if let use, case .target(let target) = use.change(to: Secret("s")) {
            precondition(findings(target.bytes, []) == 0, "none is left in the target")
        }
        return 0
    }
}

private func pieces(_ bytes: [UInt8], _ cuts: [Int]) -> [[UInt8]] {
    let borders = [0] + cuts.sorted() + [bytes.count]
    return zip(borders, borders.dropFirst()).map { Array(bytes[$0..<$1]) }
}

private func findings(_ bytes: [UInt8], _ cuts: [Int]) -> Int {
    var scanner = PlaceholderScanner()
    var count = 0
    for piece in pieces(bytes, cuts) {
        var offset = 0
        while scanner.next(in: piece.span, from: &offset, index) != nil { count += 1 }
    }
    return count
}

private func contains(_ bytes: [UInt8], _ text: [UInt8]) -> Bool {
    bytes.count >= text.count
        && (0...(bytes.count - text.count)).contains { bytes[$0..<($0 + text.count)].elementsEqual(text) }
}
