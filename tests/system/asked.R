# What test_r.py has the package for R do, as JSON.
library(dither)
desk <- dither(Sys.getenv("DITHER_URL"), Sys.getenv("DITHER_TOKEN_OF_DESK"))
app <- dither(Sys.getenv("DITHER_URL"), Sys.getenv("DITHER_TOKEN_OF_APP"))
admin <- dither(Sys.getenv("DITHER_URL"), Sys.getenv("DITHER_TOKEN"))
code <- function(wish) tryCatch({ wish; "none" }, dither_problem = function(problem) problem$code)

range <- list(lower = 0, upper = 100)
measures <- list(
  income = range, age = range, party = list(choices = c("red", "green")), sex = list(choices = c("f", "m"))
)
made <- admin$create_study("house", measures = measures, tilt = 0, epsilon_max = 8)
house <- data.frame(
  subject = paste0("h", 1:300), income = 1:300 %% 100, age = 1:300 %% 50, party = c("red", "green"),
  sex = factor(c("f", "f", "m"))
)
faulty <- transform(house[1:3, ], subject = paste0("x", 1:3), income = c(1, 1, 1000))
gaps <- transform(house[1:3, ], subject = c("y1", "y2", NA), income = c(1, NA, 3))
eve <- list(income = 5, age = 6, party = "red", sex = "f")
given <- list(
  many = app$contribute_many("house", house, epsilon = 8, trust = "central", chunk = 100)$status,
  faulty = app$contribute_many("house", faulty, epsilon = 8, trust = "central", chunk = 2)$row,
  gaps = app$contribute_many("house", gaps, epsilon = 8, trust = "central")$status,
  one = app$contribute("house", "eve", eve, epsilon = 8, trust = "central"),
  replaced = app$replace("poll", "p0", "green", epsilon = 2, trust = "central"),
  withdrawn = is.null(app$withdraw("poll", "p1")),
  budget = app$budget("p0")$epsilon.reserved
)

token <- admin$create_token("R quota", role = "analyse", studies = "steps", expires_at = Sys.time() + 3600)
quota <- admin$set_quota(token$id, share = 0.5, period_seconds = 3600)
rotated <- admin$rotate_token(token$id, grace_seconds = 60)
invited <- admin$invite("steps", kind = "open", limit = 5)
webhook <- admin$create_webhook("https://webhooks.invalid/r", events = "released")
later <- Sys.time() + 3600
schedule <- admin$create_schedule("steps", list(), every = "day", quota = 1, until = 1, starts_at = later)
session <- admin$create_session("steps", protocol = "minimum", epsilon = 0.5, participants = 10)
kept <- desk$mean("steps")
page <- desk$publish("steps", attr(kept, "said")$id, title = "Ways", expires_at = later)
replaced <- admin$publish("steps", attr(kept, "said")$id, title = "Other ways", slug = page$slug, replace = TRUE)
for (slug in c("over", "old")) admin$create_study(slug, lower = 0, upper = 1)
led <- list(
  token = admin$find_token(token$id)$name, same = rotated$id == token$id, quota = quota$share,
  usage = nrow(admin$token_usage(token$id)), invited = length(invited$urls[[1]]),
  limit = admin$invitation("steps", invited$id)$limit, invitations = nrow(admin$invitations("steps")),
  webhook = admin$find_webhook(webhook$id)$url, every = desk$find_schedule("steps", schedule$id)$every,
  schedules = nrow(desk$schedules("steps")), session = admin$session(session$id)$state,
  sessions = nrow(admin$sessions("steps")), page = desk$publications("steps")$title,
  edited = admin$edit_study("steps", reason = "typo", title = "Minutes?")$title,
  raised = admin$raise_budgets(epsilon = 0.5, reason = "another year", key = "a-year")$epsilon,
  budget = admin$set_budget("p0", epsilon = 20, reason = "asked", gaussian = c(1, 1e-6))$epsilon.total,
  budgets = 20 %in% admin$budgets()$epsilon.total,
  archived = admin$archive_study("over", reason = "over")$state, retired = admin$retire_study("old")$state,
  together = nrow(desk$plan_several("steps", list(list(statistic = "sum")))),
  narrowed = code(admin$narrow_study("steps", lower = session$id, upper = session$id)),
  finished = admin$finish_session(session$id)$state, round = admin$close_round(session$id, 1)$state
)
admin$revoke_invitation("steps", invited$id)
admin$delete_webhook(webhook$id)
admin$delete_schedule("steps", schedule$id)
desk$withdraw_publication("steps", page$slug)
admin$lift_quota(token$id)
admin$revoke_token(token$id)
gone <- c(
  admin$invitation("steps", invited$id)$state, code(admin$find_webhook(webhook$id)),
  code(desk$find_schedule("steps", schedule$id)), desk$publications("steps")$state,
  !is.na(admin$find_token(token$id)$revoked_at)
)

answers <- list(
  desk$mean("steps", by = "region"),
  desk$mean("steps", where = c(region = "north")),
  desk$histogram("steps", edges = c(30, 45.5)),
  desk$quantile("steps", q = 0.9),
  desk$describe("steps"),
  desk$shares("poll"),
  desk$correlation("house", "income", "age", share = 0.5),
  desk$table("house", "party", "sex", share = 0.5)
)
first <- desk$release("steps", share = 0.3, idempotency_key = "once")
again <- desk$release("steps", share = 0.3, idempotency_key = "once")
codes <- list(
  unknown = code(desk$mean("none")),
  unnamed = code(desk$mean("steps", "region")),
  misspelt = code(desk$mean("steps", sharing = 0.1)),
  infinite = code(desk$mean("steps", share = Inf)),
  two = code(desk$mean(c("steps", "house"))),
  local = code(app$contribute("steps", "eve", 3, epsilon = 1, trust = "local")),
  factor = code(app$contribute("steps", "eve", 3, epsilon = 1, trust = factor("local"))),
  frame = code(app$contribute_many("steps", list(1, 2), epsilon = 1, trust = "central")),
  alone = code(desk$change("steps")),
  elsewhere = code(dither("http://127.0.0.1:9", "a", tries = 1)$studies())
)
said <- list(
  answers = lapply(answers, function(answer) list(id = attr(answer, "said")$id, rows = answer)),
  printed = vapply(answers, function(answer) utils::capture.output(print(answer))[[1]], ""),
  line_printed = utils::capture.output(print(desk$regression("house", "income", "age")))[[1]],
  told = tryCatch(desk$mean("house"), dither_problem = conditionMessage),
  same = identical(attr(first, "said"), attr(again, "said")),
  difference = desk$difference("steps", between = list(region = c("north", "south")))$estimate[[1]],
  line = desk$regression("house", "income", "age")$part,
  titles = desk$studies(page_size = 2)$title,
  number = length(desk$releases("steps", page_size = 3)),
  codes = codes, given = given, led = led, gone = gone,
  methods = lapply(unclass(desk), function(method) setdiff(names(formals(method)), "..."))
)
cat(jsonlite::toJSON(said, auto_unbox = TRUE, digits = NA, na = "null"))
