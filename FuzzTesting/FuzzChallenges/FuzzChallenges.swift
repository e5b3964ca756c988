import Credentials
import FuzzSupport

/// The lines of the input are field lines. What is read is bounded and complete, and a line more takes no challenge away.
@_cdecl("FuzzChallenges_main")
public func entry(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    unsafe fuzz(count, arguments) { start, count in
        let lines = unsafe input(start, count).split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        let challenges = parseChallenges(lines)
        precondition(challenges.count <= challengeCountMax, "the number of challenges is bounded")
        for challenge in challenges {
            precondition(!challenge.scheme.isEmpty, "a challenge has a scheme")
            switch challenge.content {
            case .token68(let token): precondition(isToken68(token), "a token is one")
            case .parameters(let parameters):
                precondition(parameters.count <= challengeParameterCountMax, "the number of parameters is bounded")
                let names = Set(parameters.map(\.name))
                precondition(names.count == parameters.count, "no parameter is repeated")
            }
        }
        precondition(parseChallenges(lines.dropLast()).count <= challenges.count, "lines do not touch each other")
        let best = strongestChallenge(challenges, among: Set(ChallengeScheme.allCases))
        let basic = strongestChallenge(challenges, among: [.basic])
        precondition(basic == nil || best != nil, "more schemes find more")
        return 0
    }
}
