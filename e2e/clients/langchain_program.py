"""A program on LangChain, as one would write it for OpenAI: an agent with a tool, a stream, and embeddings.

It takes its base URL and key from the environment, and prints what it was answered.
"""

from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings


@tool
def find_gate(flight: str) -> str:
    """The gate of a flight"""
    return f"{flight} leaves from B12"


model = ChatOpenAI(model="gpt-4.1", max_retries=0, timeout=30)
agent = model.bind_tools([find_gate])
messages = [SystemMessage("You are a travel agent."), HumanMessage("Which gate does my flight leave from?")]
while True:
    answer = agent.invoke(messages)
    messages.append(answer)
    if not answer.tool_calls:
        break
    for call in answer.tool_calls:
        print("calls", call["name"], call["args"])
        messages.append(ToolMessage(find_gate.invoke(call["args"]), tool_call_id=call["id"]))
print("answers", answer.content)

messages.append(HumanMessage("Tell me at length about the ferry."))
pieces = [piece.content for piece in model.stream(messages)]
print("streams", "|".join(pieces))

# Its count of tokens would fetch a vocabulary.
embedder = OpenAIEmbeddings(model="text-embedding-3-small", check_embedding_ctx_length=False)
print("embeds", [round(number, 4) for number in embedder.embed_query("A ferry.")[:4]])
