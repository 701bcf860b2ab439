// data/row_forms.cpp -- one function a form. Which form a row has is told by its keys; a key that
// is null counts as missing.
#include "data/row_forms.hpp"

#include "core/error.hpp"

namespace vlrerank::row_parts {
namespace {

constexpr auto kExpected =
    "messages + positive_messages/negative_messages (ms-swift), query + response/rejected_response "
    "(ms-swift 3), query + pos/neg (FlagEmbedding), query + positive/negative (MTEB), query + "
    "documents (Qwen), or query + document + label";

/// A list of chat messages that holds one text and perhaps an instruction.
struct Turn {
  std::string instruction;
  json const* content = nullptr;
  std::string name;  ///< of the content, for reasons
};

Turn turn_of(json const& messages, std::string const& name) {
  if (!messages.is_array())
    reject(text(name, " is ", kind_of(messages), ", not a list of messages"));
  Turn turn;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    auto const& message = messages[i];
    auto const place = text(name, "[", i, "]");
    if (!message.is_object()) reject(text(place, " is ", kind_of(message), ", not a message"));
    auto const& role = member(message, "role");
    if (!role.is_null() && !role.is_string()) reject(place + ".role is not a text");
    auto const& content = member(message, "content");
    if (role == "system") {
      if (content.is_null()) continue;
      if (!content.is_string()) reject(place + ".content of the system message is not a text");
      turn.instruction = content.get<std::string>();
      continue;
    }
    if (turn.content != nullptr)
      reject(name + " has more than one message besides the system message");
    if (!message.contains("content")) reject(place + " has no content");
    turn.content = &content;
    turn.name = place + ".content";
  }
  if (turn.content == nullptr) reject(name + " has no message with a content");
  return turn;
}

/// The elements of a list field; a lone string or object is a list of one, null is none.
std::vector<json> list_of(json const& value, std::string const& name) {
  if (value.is_null()) return {};
  if (value.is_array()) return value.get<std::vector<json>>();
  if (value.is_string() || value.is_object()) return {value};
  reject(text(name, " is ", kind_of(value), ", not a list of documents"));
}

void read_messages(json const& row, std::string const& prefix, float label, Context const& context,
                   Sample& sample) {
  auto const name = prefix + "messages";
  auto const& list = member(row, name);
  if (!list.is_null() && !list.is_array())
    reject(text(name, " is ", kind_of(list), ", not a list of documents"));
  auto media = media_per_document(row, prefix, list.size(), context);
  for (std::size_t i = 0; i < list.size(); ++i) {
    auto const turn = turn_of(list[i], text(name, "[", i, "]"));
    auto side = side_of_content(*turn.content, turn.name, std::move(media[i]), context);
    sample.documents.push_back({std::move(side), label, turn.instruction});
  }
}

void read_swift(json const& row, Context const& context, Sample& sample) {
  sample.form = "ms-swift";
  auto const turn = turn_of(member(row, "messages"), "messages");
  sample.instruction = turn.instruction.empty() ? instruction_of(row) : turn.instruction;
  sample.query = side_of_content(*turn.content, turn.name, media_fields(row, "", context), context);
  read_messages(row, "positive_", 1, context, sample);
  read_messages(row, "negative_", 0, context, sample);
}

/// Documents of a list field, with the media fields that begin with `prefix`.
void read_list(json const& row, std::string const& key, std::string const& prefix, float label,
               Context const& context, Sample& sample) {
  auto const list = list_of(member(row, key), key);
  auto media = media_per_document(row, prefix, list.size(), context);
  for (std::size_t i = 0; i < list.size(); ++i) {
    auto const name = member(row, key).is_array() ? text(key, "[", i, "]") : key;
    auto side = side_of_value(list[i], name, std::move(media[i]), context);
    sample.documents.push_back({std::move(side), label, ""});
  }
}

void read_two_lists(json const& row, std::string const& positives, std::string const& negatives,
                    Context const& context, Sample& sample) {
  sample.instruction = instruction_of(row);
  sample.query =
      side_of_value(member(row, "query"), "query", media_fields(row, "", context), context);
  read_list(row, positives, "positive_", 1, context, sample);
  read_list(row, negatives, "negative_", 0, context, sample);
}

/// ms-swift 3 has one list of images for the whole row: the tags of query, response and
/// rejected_response take them in this order. Returns false when the tags do not use them all up.
bool read_shared_images(json const& row, Context const& context, Sample& sample) {
  for (auto const* prefix : {"positive_", "negative_"}) {
    for (auto const* kind : {"images", "image", "videos", "video"}) {
      if (has(row, std::string(prefix) + kind)) return false;
    }
  }
  auto const responses = list_of(member(row, "response"), "response");
  auto const rejected = list_of(member(row, "rejected_response"), "rejected_response");
  auto const& tag = context.options.image_tag;
  auto const in_query = count_tags(member(row, "query"), tag);
  auto tags = in_query;
  for (auto const& item : responses) tags += count_tags(item, tag);
  for (auto const& item : rejected) tags += count_tags(item, tag);
  auto media = media_fields(row, "", context);
  if (media.images.size() != tags || tags == in_query) return false;

  std::size_t next = 0;
  auto const take = [&](json const& content, std::string const& name) {
    MediaLists own;
    for (auto count = count_tags(content, tag); count > 0; --count)
      own.images.push_back(std::move(media.images[next++]));
    if (name == "query") own.videos = std::move(media.videos);
    return side_of_value(content, name, std::move(own), context);
  };
  sample.instruction = instruction_of(row);
  sample.query = take(member(row, "query"), "query");
  for (auto const& item : responses) sample.documents.push_back({take(item, "response"), 1, ""});
  for (auto const& item : rejected)
    sample.documents.push_back({take(item, "rejected_response"), 0, ""});
  return true;
}

void read_swift3(json const& row, Context const& context, Sample& sample) {
  sample.form = "ms-swift-3";
  auto const& history = member(row, "history");
  if (!history.is_null() && !history.empty())
    reject("history is given, but a query has one turn only");
  if (!read_shared_images(row, context, sample))
    read_two_lists(row, "response", "rejected_response", context, sample);
}

float document_label(json const& value, std::string const& name, Context const& context) {
  if (!value.is_null()) return label_of(value, name);
  if (context.options.labels_required) reject(name + " is missing");
  return 0;
}

void read_qwen(json const& row, Context const& context, Sample& sample) {
  sample.form = "qwen";
  auto const& documents = member(row, "documents");
  if (!documents.is_array())
    reject(text("documents is ", kind_of(documents), ", not a list of documents"));
  auto const& labels = member(row, "labels");
  if (!labels.is_null() && (!labels.is_array() || labels.size() != documents.size()))
    reject(text("labels is not a list of ", documents.size(), " numbers, one a document"));
  sample.instruction = instruction_of(row);
  sample.query =
      side_of_value(member(row, "query"), "query", media_fields(row, "", context), context);
  for (std::size_t i = 0; i < documents.size(); ++i) {
    auto const name = text("documents[", i, "]");
    auto const own = has(documents[i], "label") || labels.is_null();
    auto const label = own ? document_label(member(documents[i], "label"), name + ".label", context)
                           : document_label(labels[i], text("labels[", i, "]"), context);
    auto side = side_of_value(documents[i], name, {}, context);
    sample.documents.push_back({std::move(side), label, ""});
  }
}

void read_pair(json const& row, Context const& context, Sample& sample) {
  sample.form = "pair";
  sample.instruction = instruction_of(row);
  sample.query =
      side_of_value(member(row, "query"), "query", media_fields(row, "", context), context);
  auto const& document = member(row, "document");
  auto label = member(row, "label");
  if (label.is_null() && document.is_object()) label = member(document, "label");
  auto const relevance = document_label(label, "label", context);
  auto side = side_of_value(document, "document", media_fields(row, "document_", context), context);
  sample.documents.push_back({std::move(side), relevance, ""});
}

std::string keys_of(json const& row) {
  std::string keys;
  for (auto const& item : row.items()) keys += (keys.empty() ? "" : ", ") + item.key();
  return keys.empty() ? "none" : keys.substr(0, 200);
}

}  // namespace

void read_row(json const& row, Context const& context, Sample& sample) {
  if (has(row, "messages") && (has(row, "positive_messages") || has(row, "negative_messages"))) {
    read_swift(row, context, sample);
  } else if (has(row, "messages") || !has(row, "query")) {
    reject(text("unknown row form with the keys ", keys_of(row), "; expected ", kExpected));
  } else if (has(row, "documents")) {
    read_qwen(row, context, sample);
  } else if (has(row, "document")) {
    read_pair(row, context, sample);
  } else if (has(row, "response") || has(row, "rejected_response")) {
    read_swift3(row, context, sample);
  } else if (has(row, "pos") || has(row, "neg")) {
    sample.form = "flagembedding";
    read_two_lists(row, "pos", "neg", context, sample);
  } else if (has(row, "positive") || has(row, "negative")) {
    sample.form = "mteb";
    read_two_lists(row, "positive", "negative", context, sample);
  } else {
    reject(text("unknown row form with the keys ", keys_of(row), "; expected ", kExpected));
  }
}

}  // namespace vlrerank::row_parts
