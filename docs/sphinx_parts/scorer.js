// Guides before members: a title counts more than a name, a name no more than a text.
// The reference counts half; contract tests, internals and raw results come last.
var Scorer = {
  objNameMatch: 4,
  objPartialMatch: 1,
  objPrio: { 0: 2, 1: 1, 2: -5 },
  objPrioDefault: 0,
  title: 40,
  partialTitle: 20,
  term: 5,
  partialTerm: 2,
  score: function (result) {
    var page = result[0], score = result[4];
    if (/^(api\/testing|api\/classes\/.*(testing|codec)|project\/|ways$|releasing$)/.test(page)) return score / 8;
    if (/^(api\/|papers$|bibliography$|benchmarks$|changed_results$|measured$|reliability$)/.test(page)) return score / 3;
    return /^(tutorials\/)/.test(page) ? score / 2 : score;
  },
};
