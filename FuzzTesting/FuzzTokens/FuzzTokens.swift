import FuzzSupport
import Message
import Tokens

private let now = WallTime(secondsSinceEpoch: 1_000_000_000)

/// The first byte says what the rest is: a signed token, the claims of one, a set of keys, or a file with tokens.
@_cdecl("FuzzTokens_main")
public func entry(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    unsafe fuzz(count, arguments) { start, count in
        let bytes = unsafe input(start, count)
        guard let choice = bytes.first else { return 0 }
        let text = Array(bytes.dropFirst())
        switch choice & 3 {
        case 0: read(text)
        case 1: read(encodeBase64URL(#"{"alg":"HS256"}"#.utf8) + [0x2E] + encodeBase64URL(text) + [0x2E])
        case 2: readKeys(text)
        default: readFile(text)
        }
        return 0
    }
}

private func read(_ text: [UInt8]) {
    var terms = TokenTerms()
    (terms.issuer, terms.audiences, terms.algorithms) = ("i", ["a"], SignatureAlgorithm.allCases)
    terms.groupsClaim = "g"
    do throws(TokenFault) {
        let token = try JSONWebToken(text)
        precondition(text.count <= JSONWebToken.bytesMax, "a token is bounded")
        precondition(
            text == token.signingInput + [0x2E] + encodeBase64URL(token.signature), "a token has one spelling")
        let subject = try terms.judge(token, now: now)
        precondition(subject.expiry > now, "who is accepted is so for a while")
        precondition(!subject.name.isEmpty && subject.groups.allSatisfy { !$0.isEmpty }, "names are names")
    } catch {}
}

private func readKeys(_ text: [UInt8]) {
    do throws(KeySetFault) {
        let set = try JSONWebKeySet(parsing: text, allowsShared: false)
        precondition(!set.keys.isEmpty && set.keys.count <= JSONWebKeySet.countMax, "a set is bounded")
        precondition(set.candidates(for: .hs256, identifier: nil).isEmpty, "a public key is no secret")
        for algorithm in SignatureAlgorithm.allCases {
            let found = set.candidates(for: algorithm, identifier: nil)
            precondition(found.count <= JSONWebKeySet.candidatesMax && found.allSatisfy { $0.serves(algorithm) })
        }
    } catch {
        precondition(!error.text.isEmpty)
    }
}

private func readFile(_ text: [UInt8]) {
    let (file, errors) = TokenFile.parse(text)
    precondition(file.names.allSatisfy { !$0.isEmpty && !$0.contains(":") }, "names are names")
    precondition(errors.allSatisfy { $0.line > 0 })
}
